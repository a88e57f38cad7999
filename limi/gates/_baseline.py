"""An earlier run that a gate compares with."""

from __future__ import annotations

from pathlib import Path

from limi.audits.problem import Problem
from limi.audits.reopen import Run
from limi.audits.run_folder import reading
from limi.audits.summary import read_flips
from limi.errors import InvalidInput, spell
from limi.gates._measures import BaselineRate
from limi.system import words

__all__ = ["Baseline"]


class Baseline:
    """A finished run of the same table, protected values and generator."""

    def __init__(self, folder: str | Path, problem: Problem) -> None:
        self.folder = str(folder)
        run = Run.of(folder)
        self._summary, self._manifest = run.summary, run.manifest
        theirs, ours = self._summary.hashes.get("data_sha256"), problem.hashes()["data_sha256"]
        if theirs != ours:
            summary = self._summary
            raise InvalidInput(
                f"the baseline {self.folder!r} tested a different table or different protected "
                f"values ({summary.table!r}, {words.count(summary.n_rows)} rows, protected "
                f"{', '.join(summary.protected)}), so its rates cannot be compared here; test the "
                "earlier model on this table first, and name that run"
            )

        self._require_rule(problem)

    def _require_rule(self, problem: Problem) -> None:
        """InvalidInput where the run counted flips of another kind."""
        then = self._manifest.decision or "favorable"
        if then != str(problem.target.rule):
            raise InvalidInput(
                f"the baseline {self.folder!r} was tested with the decision {then!r}, but this "
                f"gate has {str(problem.target.rule)!r}; give both the same --decision"
            )
        order, rule = self._manifest.order, problem.target.rule
        now = tuple(rule.labels) if rule.ordered else None
        if order != now:
            raise InvalidInput(
                f"the baseline {self.folder!r} has the order {spell(order or ())}, but this gate "
                f"has {spell(now or ())}; "
                "give both the same --order"
            )
        if rule.kind != "favorable":
            return
        favorable = self._manifest.favorable
        labels = favorable if isinstance(favorable, tuple) else (favorable,)
        # Of two labels a flip is a flip, whichever of them is favorable.
        if len(problem.known) > 2 and set(map(str, labels)) != set(map(str, problem.wanted)):
            raise InvalidInput(
                f"in the baseline {self.folder!r} {spell(labels)} was favorable, but in this gate "
                f"{spell(problem.wanted)}; give both the same --favorable"
            )

    def require_generator(self, name: str | None, sha256: str | None, seed: int) -> None:
        """InvalidInput where natural rows are other people here than they were in the run."""
        then = (self._manifest.generator, self._manifest.generator_sha256, self._manifest.seed)
        if then[1] is not None and then[1] == sha256:
            return  # the same file, whatever it is called and whatever the seed is
        if then != (name, sha256, seed):
            raise InvalidInput(
                f"the baseline {self.folder!r} drew its natural rows with the generator {then[0]} "
                f"and seed {then[2]}, but this gate uses {name} and seed {seed}; give both the "
                "same --generator and --seed"
            )

    def rate(self, population: str, seed: int) -> BaselineRate:
        """The run's rate of a population, with the verdicts on its rows where they are kept."""
        rate = self._summary.rates.get(population)
        # Held-out and real rows are people of a table, which the run may not have had.
        if rate is None and self._summary.blind and population in ("natural", "uniform"):
            return BaselineRate(0, 0, is_zero=True)
        if rate is None or not rate.n:
            why = self._summary.unmeasured.get(population)
            raise InvalidInput(
                f"the baseline {self.folder!r} has no rate for {population} rows"
                + (f", because {why}" if why else "")
            )
        with reading("summary", self.folder):
            flips = read_flips(self._summary.rate_flips.get(population), rate)
        if self._manifest.seed != seed:
            flips = None
        return BaselineRate(round(rate.estimate * rate.n), rate.n, rate.anytime, flips)
