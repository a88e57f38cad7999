"""From findings to the rows that a model is trained on again: choose, label, mix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from limi.decisions import AS_DECIDED, Rule
from limi.repairs import _labels, _recipes
from limi.repairs._ensemble import Ensemble
from limi.repairs._labels import Policy
from limi.repairs._recipes import Rng, Training
from limi.search.findings import Found
from limi.types import Rows, Scores, Truth

__all__ = ["PAPER_FRACTION", "PRESETS", "MixedTable", "Preset", "mix_rows", "n_findings"]

PAPER_FRACTION = 0.30


@dataclass(frozen=True)
class Preset:
    """Settings that belong together."""

    recipe: str
    label: Policy
    fraction: float = PAPER_FRACTION
    replace: bool = False  # may a finding be drawn twice, even where there are enough?


PRESETS = {
    # Flips vanish with few findings already; more of them narrow group gaps, at some accuracy.
    "best": Preset("both+table", "vote", fraction=0.05),
    "strong": Preset("both+table", "vote"),
    "paper": Preset("alone", "ensemble", replace=True),
}


@dataclass(frozen=True)
class MixedTable:
    """The rows to train on: all that were there, then what was added."""

    rows: Rows
    labels: Truth
    findings: int  # that were drawn, repeated ones counted again
    own: int  # rows that were there

    @property
    def added(self) -> tuple[Rows, Truth]:
        """The rows that were not there, and their labels."""
        return self.rows[self.own :], self.labels[self.own :]


def n_findings(fraction: float, n_rows: int) -> int:
    """How many findings join so many rows."""
    return max(1, round(fraction * n_rows))


def mix_rows(
    preset: Preset,
    training: Training,
    found: Found,
    score: Callable[[Rows], Scores],
    *,
    ensemble: Callable[[], Ensemble],
    privileged: Mapping[str, float],
    rng: Rng,
    decision: Rule = AS_DECIDED,
) -> MixedTable:
    """Training rows with findings by a preset; `score` is of the model that labels them."""
    n = n_findings(preset.fraction, len(training.rows))
    drawn = found[_recipes.choose(found, n, rng, replace=preset.replace)]
    labels = _labels.decide(
        preset.label,
        score,
        training.schema,
        drawn.rows,
        ensemble=ensemble,
        privileged=privileged,
        decision=decision,
    )
    chosen = _recipes.Chosen(drawn, labels)
    rows, all_labels = _recipes.mix(preset.recipe, training, chosen, rng)
    return MixedTable(rows, all_labels, len(chosen), len(training.rows))
