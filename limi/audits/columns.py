"""Which columns of a table are the model's: what the user says, and what the columns look like."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from limi.errors import BadModel, InvalidInput, LimiError, nearest, spell
from limi.models._remote import RemoteModel
from limi.models.target import Target
from limi.table.frames import Frame
from limi.table.recognised import Recognised, recognise, tell_aside
from limi.table.schema import Schema

__all__ = ["Chosen", "choose_hidden", "leave_out"]

_log = logging.getLogger(__name__)

_FIRST = 2  # rows that show whether a function does without a column


def leave_out(
    schema: Schema, drop: str | Sequence[str], only: str | Sequence[str]
) -> tuple[Schema, tuple[str, ...]]:
    """The schema without columns that the user says are not the model's, and all of these;
    protected ones stay, although the model is not given them."""
    dropped = _read_names(drop, schema.names, "--drop")
    kept = _read_names(only, schema.names, "--only")
    if dropped and kept:
        raise InvalidInput(
            "--drop and --only were both given; name either the columns that the model takes "
            "(--only) or those that it does not take (--drop)"
        )
    not_taken = [name for name in schema.names if name in dropped or (kept and name not in kept)]
    if not not_taken:
        return schema, ()
    left = [name for name in schema.names if name not in not_taken or name in schema.protected]
    if set(not_taken) >= set(schema.names):
        raise InvalidInput("no column is left for the model; drop fewer")
    return schema.select(left), tuple(not_taken)


def _read_names(given: str | Sequence[str], names: Sequence[str], option: str) -> list[str]:
    """Columns as they were named, one by one or several with commas between them."""
    texts = [given] if isinstance(given, str) else list(given)
    found = [
        name
        for text in texts
        for name in ([text] if text in names else [part.strip() for part in text.split(",")])
    ]
    for name in found:
        if name not in names:
            raise InvalidInput(
                f"{option} names {name!r}, which is not a column; {nearest(name, names)}"
            )
    return found


def choose_hidden(
    schema: Schema,
    personal: Mapping[str, str],
    redact: bool | str | Sequence[str],
    shown: Collection[str] = (),
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Columns whose cells are shown and written nowhere, and a note on each that looks personal.

    Hidden are those that `redact` names and those that look personal, unless it is False or they
    are among the `shown` ones.
    """
    named = [] if isinstance(redact, bool) else [redact] if isinstance(redact, str) else [*redact]
    for name in named:
        if name not in schema.names:
            raise InvalidInput(
                f"--redact names {name!r}, which is not a column of the model; "
                f"{nearest(name, schema.names)}"
            )
        if name in schema.protected:
            raise InvalidInput(
                f"--redact names {name!r}, which is protected: a run shows how decisions depend on "
                "it, so it cannot be hidden"
            )
    looks = set() if redact is False else set(personal) - {*schema.protected, *shown}
    hidden = tuple(name for name in schema.names if name in named or name in looks)
    return hidden, tuple(
        f"{name!r} looks like {kind}; "
        + (
            "its cells are hidden wherever people are shown or written (--show-personal shows them)"
            if name in hidden
            else "its cells are shown and written as they are, so take care who can read them"
        )
        for name, kind in personal.items()
    )


@dataclass(frozen=True)
class Chosen:
    """What the columns of a table look like, and which are not the model's unless it takes them."""

    found: dict[str, Recognised]
    unlikely: tuple[str, ...]

    @staticmethod
    def among(frame: Frame, schema: Schema, only: str | Sequence[str], *, labelled: bool) -> Chosen:
        """Of the columns that nobody described, or named as the only ones."""
        found = recognise(frame, schema, labelled=labelled)
        named = _read_names(only, schema.names, "--only")
        return Chosen(
            found,
            tuple(
                name
                for name in schema.names
                if name in schema.guessed
                and found[name].is_aside
                and name not in (*schema.protected, *named)
            ),
        )

    def needs_all(self, bound: Target, frame: Frame) -> bool:
        """Does a function that names no columns fail without the unlikely ones?

        A model behind an address is not sent them for a try: it may keep what it gets.
        """
        model = bound.model
        if (
            isinstance(model, RemoteModel)
            or not self.unlikely
            or model.columns is not None
            or model.n_columns is not None
        ):
            return False
        try:
            bound.score(bound.codec.encode(frame)[:_FIRST])
        except BadModel:
            return True
        except LimiError:
            return False
        return False

    def warn(self, bound: Target) -> None:
        """Say which columns a model behind an address is not sent, before it is sent a row."""
        if isinstance(bound.model, RemoteModel):
            names = [name for name in self.unlikely if name not in bound.codec.schema.names]
            for sentence in tell_aside(self.found, names):
                _log.warning("%s: %s", bound.model.exchange.shape.host, sentence)

    def tell(self, taken: Collection[str]) -> tuple[str, ...]:
        """Sentences on columns that were set aside, and on those that the model takes."""
        aside = [name for name in self.unlikely if name not in taken]
        used = [name for name in self.unlikely if name in taken]
        told = tell_aside(self.found, aside)
        if used:
            told += (
                f"the model takes {spell(map(repr, used))}, which "
                f"{'look' if len(used) > 1 else 'looks'} like dates, names, identifiers or labels; "
                "generated people get such values from the table",
            )
        return told

    def personal(self, names: Collection[str]) -> dict[str, str]:
        """Columns among these that look like personal data, and like which."""
        return {
            name: found.personal
            for name, found in self.found.items()
            if found.personal and name in names
        }
