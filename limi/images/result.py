"""What an audit of images found, as numbers, as plain data, and as pairs to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from limi.images.attributes import Learned
from limi.images.figures import Dose, Effect, Excess
from limi.images.quality import Quality
from limi.images.trials import Kept, Procedure, Trials

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FORMAT", "ImageResult", "Sheet"]

FORMAT = 1


@dataclass(frozen=True)
class Sheet:
    """Pairs to look at, with the numbers of each: a line of `trials` for an image of `images`."""

    trials: Trials
    images: Kept


@dataclass(frozen=True, kw_only=True)
class ImageResult:
    """An audit of images.

    Effects and the excess are measured on random starts of the generator; the search starts where
    the decision is close, and its counts estimate nothing.
    """

    effect: Effect
    excess: Excess
    excess_searched: Excess
    doses: tuple[Dose, ...]
    findings: Sheet  # strict twins whose decision flips, strongest first
    samples: Sheet  # valid twins at random, whatever their decision
    n_findings: int  # all of them, kept as images or not
    searched: Mapping[str, int]  # counts of the search
    measured: Mapping[str, int]  # counts of the random starts
    groups: tuple[str, str]
    protected: str
    truth: str | None
    held: tuple[str, ...]
    planes: Mapping[str, float]  # how well each plane says what its scorer does, as AUC
    scorers: tuple[Learned, ...]
    quality: Quality | None
    procedure: Procedure
    preset: str
    generator: str
    target: str
    placebo: bool
    planted: float
    size: tuple[int, int]
    seed: int
    stop: str
    queries: int
    seconds: float
    notes: tuple[str, ...] = field(default_factory=tuple)

    @property
    def verdict(self) -> str:
        """`effect`, `excess` or `both` where they stand out from the placebo; else `none`."""
        if not self.placebo:
            return "unknown"
        seen = {"effect": self.effect.seen, "excess": self.excess.seen}
        names = [name for name, is_seen in seen.items() if is_seen]
        return "both" if len(names) == 2 else (names or ["none"])[0]

    @property
    def smallest_dose(self) -> Dose | None:
        """The smallest planted bias that this run would have seen; None where none was."""
        return next((one for one in self.doses if one.effect_seen or one.excess_seen), None)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `images.json` holds it."""
        smallest = self.smallest_dose
        return {
            "format": FORMAT,
            "verdict": self.verdict,
            "effect": {**asdict(self.effect), "seen": self.effect.seen},
            "excess": {**asdict(self.excess), "seen": self.excess.seen},
            "excess_searched": {
                **asdict(self.excess_searched),
                "seen": self.excess_searched.seen,
            },
            "doses": [asdict(one) for one in self.doses],
            "smallest_dose_seen": None if smallest is None else smallest.dose,
            "smallest_effect_seen": None if smallest is None else smallest.added,
            "findings": self.n_findings,
            "pairs": len(self.findings.trials),
            "searched": dict(self.searched),
            "measured": dict(self.measured),
            "protected": {"name": self.protected, "groups": list(self.groups)},
            "truth": self.truth,
            "held": list(self.held),
            "planes": dict(self.planes),
            "scorers": [
                {
                    "name": one.name,
                    "architecture": one.architecture,
                    "images": one.n,
                    "held_out": one.n_held_out,
                    "accuracy": one.accuracy,
                }
                for one in self.scorers
            ],
            "quality": None if self.quality is None else asdict(self.quality),
            "procedure": asdict(self.procedure),
            "preset": self.preset,
            "generator": self.generator,
            "target": self.target,
            "placebo": self.placebo,
            "planted": self.planted,
            "size": list(self.size),
            "seed": self.seed,
            "stop": self.stop,
            "queries": self.queries,
            "seconds": round(self.seconds, 3),
            "notes": list(self.notes),
        }

    def table(self) -> pd.DataFrame:
        """One line per finding whose images were kept."""
        import pandas as pd

        some = self.findings.trials
        return pd.DataFrame(
            {
                "score": some.score,
                "twin_score": some.twin,
                "placebo_score": some.placebo,
                "effect": some.effect,
                "protected": some.protected,
                "protected_twin": some.protected_twin,
                "truth": some.truth,
                "truth_twin": some.truth_twin,
                "distance": some.distance,
            }
        )
