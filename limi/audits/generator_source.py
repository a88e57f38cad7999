"""Where the generator of an audit comes from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from limi import generators
from limi.audits.problem import Problem
from limi.audits.run_folder import file_digest
from limi.errors import InvalidInput, spell
from limi.generators import Generator
from limi.streams import Stream
from limi.system import writing
from limi.system.reading import is_file
from limi.system.watch import Watch
from limi.table.schema import Schema

__all__ = ["GeneratorSource", "anchored"]


def anchored(generator: str | Path | Generator | None) -> str | Path | Generator | None:
    """A generator's file from the root on, so that a model may go elsewhere; all else as it is."""
    if isinstance(generator, (str, Path)) and generator != "none" and is_file(generator):
        return writing.absolute(generator)
    return generator


@dataclass(frozen=True)
class GeneratorSource:
    """Where the generator comes from: a name to fit, a file, an object, or nowhere."""

    given: str | Path | Generator | None
    called: object  # the same in the user's words
    seed: int
    device: str

    @property
    def name(self) -> str | None:
        """What the report calls it."""
        if self.given is None or isinstance(self.given, (str, Path)):
            return None if self.given in (None, "none") else str(self.called)
        return self.given.kind

    @property
    def digest(self) -> str | None:
        """sha256 of the file it is read from, if it is."""
        given = self.given
        known = isinstance(given, (str, Path)) and is_file(given)
        return file_digest(Path(given)) if known else None  # type: ignore[arg-type]

    def check(self, problem: Problem) -> None:
        """InvalidInput where there is none of that name, or it is of other columns."""
        if self.name is None:
            return
        if not isinstance(self.given, (str, Path)):
            _fitting(self.given, problem.schema)
        elif is_file(self.given):
            _fitting(self._loaded, problem.schema)
        else:
            generators.get(str(self.given))

    @cached_property
    def _loaded(self) -> Generator:
        """The generator of a file, read once."""
        return generators.load(str(self.given), device=self.device)

    @property
    def to_fit(self) -> bool:
        """Is it a name, so that it has to be fitted first?"""
        given = self.given
        return self.name is not None and isinstance(given, (str, Path)) and not is_file(given)

    def make(self, problem: Problem, watch: Watch) -> Generator | None:
        """The generator, fitted to the problem's table where it has to be; OutOfTime where that
        takes too long."""

        def step(done: float, words: str) -> None:
            watch.look()
            watch.step(done)

        if self.name is None:
            return None
        if not isinstance(self.given, (str, Path)):
            return _fitting(self.given, problem.schema)
        if is_file(self.given):
            return _fitting(self._loaded, problem.schema)
        rng = Stream.GENERATOR.rng(self.seed)
        return generators.fit(
            str(self.given),
            problem.rows,
            problem.schema,
            rng,
            device=self.device,
            on_step=step,
        )


def _fitting(generator: Generator | None, schema: Schema) -> Generator | None:
    """A ready-made generator, held to the columns of the problem."""
    if generator is not None and generator.schema.columns != schema.columns:
        raise InvalidInput(
            "the generator was fitted to columns that differ from those the model takes: "
            f"{spell(generator.schema.names)}; fit it on this table"
        )
    return None if generator is None else generators.obey(generator, schema)
