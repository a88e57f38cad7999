"""Pairs of people that a search found, kept as a test: does a model still decide them differently?

`limi export RUN --pytest FOLDER` writes the pairs, a Parquet file that also says how a model's
answers about them are read, and a test that asks them. `Pairs.read` and `Pairs.ask` are what that
test calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from limi.audits.reopen import as_arrays
from limi.audits.summary import causes_first, causes_in_words, tell_causes
from limi.audits.verify import ask_again
from limi.changes import as_meant
from limi.decisions import Classes, Rule, parse_rule
from limi.errors import CorruptStore, InvalidInput
from limi.models import Meaning, trial
from limi.models.target import Target
from limi.models.trial import Terms
from limi.search.findings import Found
from limi.system.reading import regular
from limi.system.shown import clean
from limi.system.watch import Watch
from limi.system.words import either
from limi.table import schema_files
from limi.table.frames import Codec
from limi.table.schema import Schema
from limi.types import Mask, Value

__all__ = ["FORMAT", "Asked", "Pairs", "Reading", "read_pairs"]

FORMAT = 1
_KEY = b"limi.pairs"
_SHOWN = 3  # pairs in a failure
_MOST_OTHERS = 8  # columns that both people share, in a line


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a model's answers are read: as in the run that the pairs come from."""

    favorable: Any  # a label, several, or None
    labels: tuple[Value, ...]
    output: Meaning | None
    decision: str
    table: str
    ordered: bool = False  # where decisions are classes: are the labels in their order?

    @property
    def rule(self) -> Rule:
        """What counts as a decision."""
        rule = parse_rule(self.decision)
        if isinstance(rule, Classes):
            return replace(rule, labels=self.labels, ordered=self.ordered)
        return rule


@dataclass(frozen=True, repr=False)
class Asked:
    """What a model said to pairs of people."""

    pairs: Pairs
    found: Found  # with the new scores
    flips: Mask

    def __len__(self) -> int:
        """How many pairs are still decided differently."""
        return int(self.flips.sum())

    def __repr__(self) -> str:
        return f"<{len(self):,} of {len(self.flips):,} pairs flip>"

    def __str__(self) -> str:
        """Why a test fails, with three of the pairs."""
        gap = self.pairs.reading.rule.gap(self.found.score, self.found.partner_score)
        places = np.flatnonzero(self.flips)
        strongest = places[np.argsort(-gap[places], kind="stable")][:_SHOWN]
        return "\n".join(
            [
                f"{len(self):,} of {len(self.flips):,} pairs of people are decided differently "
                f"when only {either(list(self.pairs.schema.protected))} changes, with what goes "
                "along with it",
                *(f"  {self._line(int(place))}" for place in strongest),
                *(["  ..."] if len(places) > _SHOWN else []),
            ]
        )

    def _line(self, place: int) -> str:
        cells = [
            (column.name, column.show(float(mine)), column.show(float(other)))
            for column, mine, other in zip(
                self.pairs.schema.columns,
                self.found.rows[place],
                self.found.partner[place],
                strict=True,
            )
        ]
        protected = self.pairs.schema.protected
        flipped_by = str(causes_in_words(self.pairs.schema, self.found.causes[[place]])[0])
        moved = [(name, f"{mine} -> {other}") for name, mine, other in cells if mine != other]
        changed = ", ".join(
            f"{name} {change}" for name, change in causes_first(moved, flipped_by, protected)
        )
        if flipped_by:  # by the model that was searched
            changed += f" (by {tell_causes(flipped_by, protected)} in the run)"
        same = [f"{name} {mine}" for name, mine, other in cells if mine == other]
        rule = self.pairs.reading.rule
        answers = (float(told[place]) for told in (self.found.score, self.found.partner_score))
        sides = " -> ".join(map(rule.show, answers))
        more = " ..." if len(same) > _MOST_OTHERS else ""
        return clean(f"{changed}: {rule.noun} {sides}; {', '.join(same[:_MOST_OTHERS])}{more}")


@dataclass(frozen=True)
class Pairs:
    """People that a search found, each with a partner who was decided differently."""

    schema: Schema
    frame: Any  # pandas, as the findings of a run
    found: Found  # the same as arrays
    reading: Reading

    def __len__(self) -> int:
        return len(self.frame)

    @staticmethod
    def read(path: str | Path) -> Pairs:
        """Pairs that `limi export` wrote; CorruptStore where the file is another one."""
        path = regular(path, "the pairs that limi export wrote")
        with _reading(path):
            import pyarrow.parquet as pq

            table = pq.read_table(path)
            kept = (table.schema.metadata or {}).get(_KEY)
            if kept is None:
                raise CorruptStore(f"{str(path)!r} holds no pairs that limi export wrote")
            tree = json.loads(kept)
            if tree["format"] > FORMAT:
                raise CorruptStore(
                    f"{str(path)!r} was written by a newer limi (format {tree['format']}, this one "
                    f"reads up to {FORMAT}); upgrade limi"
                )
            reading = Reading(
                favorable=tree["favorable"],
                labels=tuple(tree["labels"]),
                output=tree["output"],
                decision=tree["decision"],
                table=tree["table"],
                ordered=tree.get("ordered", False),
            )
            schema, frame = schema_files.parse(tree["schema"], str(path)), table.to_pandas()
            found = as_arrays(Codec.learn(frame, schema), frame, reading.rule)
            return Pairs(schema, frame, found, reading)

    def as_parquet(self) -> bytes:
        """The file; the same bytes for the same pairs."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        kept = {
            "format": FORMAT,
            "schema": schema_files.dump(self.schema),
            "favorable": self.reading.favorable,
            "labels": list(self.reading.labels),
            "output": self.reading.output,
            "decision": self.reading.decision,
            "table": self.reading.table,
            "ordered": self.reading.ordered,
        }
        table = pa.Table.from_pandas(self.frame, preserve_index=False)
        metadata = {**(table.schema.metadata or {}), _KEY: json.dumps(kept).encode()}
        sink = pa.BufferOutputStream()
        pq.write_table(table.replace_schema_metadata(metadata), sink)
        return bytes(sink.getvalue())

    def ask(self, model: Any, *, trust_pickle: bool = False, trust: Sequence[str] = ()) -> Asked:
        """Put every pair to a model, `KIND:PLACE` or a live object, as a run's second check does.

        A file is tried in a process of its own first.
        """
        people = self.frame[self.schema.names]
        codec = Codec.learn(people, self.schema)

        def bound(meaning: Meaning | None) -> Target:
            terms = Terms(
                favorable=_labels(self.reading.favorable),
                labels=self.reading.labels,
                output=meaning,
                rule=self.reading.rule,
                trust_pickle=trust_pickle,
                trust=tuple(trust),
                table=self.reading.table,
            )
            with trial.begun(model, None, terms) as judge:
                judge(codec, people)
            return terms.bind(model, codec)

        target = as_meant(None, self.reading.output, bound)
        found = self.found
        # A model may take fewer columns than the one that was searched, in another order.
        places = [self.schema.position(name) for name in target.codec.schema.names]
        given = replace(found, rows=found.rows[:, places], partner=found.partner[:, places])
        both = np.concatenate([given.rows, given.partner])
        target = target.settled(both)
        if target.rule.kind == "number":  # what rounding may do depends on their size
            target = replace(target, rule=target.rule.settle(target.score(both)))
        again, flips = ask_again(target, given, Watch())
        told = replace(found, score=again.score, partner_score=again.partner_score)
        return Asked(self, told, flips)


def read_pairs(path: str | Path) -> Pairs:
    """The pairs that `limi export` wrote."""
    return Pairs.read(path)


def _labels(favorable: Any) -> Any:
    return tuple(favorable) if isinstance(favorable, list) else favorable


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        raise CorruptStore(f"the pairs in {str(path)!r} are damaged: {error}") from None
    except (KeyError, OSError, TypeError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:160]
        raise CorruptStore(f"the pairs in {str(path)!r} cannot be read: {why}") from None
