"""A model bound to a codec: rows in, scores out, exactly as the user's model receives them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from limi.errors import BadModel, LimiError, listed
from limi.frames import Codec
from limi.models._base import Model
from limi.types import Rows, Scores

__all__ = ["Target", "bind"]


@dataclass(frozen=True)
class Target:
    """Asks a model for the scores of rows."""

    model: Model
    codec: Codec
    notes: tuple[str, ...] = field(default=())

    def present(self, rows: Rows) -> Any:
        """What the model is given for these rows."""
        return self.codec.matrix(rows) if self.model.takes == "matrix" else self.codec.decode(rows)

    def score(self, rows: Rows) -> Scores:
        """One score a row; BadModel where the model raises or answers what it must not."""
        if not len(rows):
            return np.empty(0)
        inputs = self.present(rows)
        try:
            scores = self.model.score(inputs)
        except (LimiError, MemoryError):
            raise
        except Exception as error:
            reason = str(error).strip().splitlines()
            raise BadModel(
                f"the model raised {type(error).__name__}: {reason[0] if reason else 'no message'} "
                f"(it was given {_described(inputs)})"
            ) from error
        if scores.shape != (len(rows),):
            raise BadModel(
                f"the model returned {len(scores)} scores for {len(rows)} rows; "
                "it must return one a row"
            )
        if not np.isfinite(scores).all():
            raise BadModel(
                f"the model returned {int((~np.isfinite(scores)).sum())} scores that are NaN or "
                f"infinite among {len(scores)}; scores must be finite"
            )
        return scores

    def contract(self, rows: Rows) -> int:
        """Hold the model to what the search relies on; the number of rows it was asked.

        The same row twice gives the same decision, and a batch of one the same as a batch of many.
        """
        rows = rows[:16]
        if not len(rows):
            return 0
        first, again = self.score(rows), self.score(rows)
        if not np.allclose(first, again, rtol=1e-6, atol=1e-9):
            worst = int(np.argmax(np.abs(first - again)))
            raise BadModel(
                f"the model is not deterministic: asked twice for the same row it answered "
                f"{first[worst]:.6g} and {again[worst]:.6g}; fix its seed, or switch dropout off "
                "(eval mode), so that a flip can be told from noise"
            )
        alone_index = range(min(4, len(rows)))
        alone = np.concatenate([self.score(rows[i : i + 1]) for i in alone_index])
        together = first[: len(alone)]
        # Sums in another order differ in the last digits; decisions must not.
        same_side = (alone > 0.5) == (together > 0.5)
        near = np.isclose(alone, together, rtol=1e-3, atol=1e-3)
        if not (near & (same_side | (np.abs(together - 0.5) < 1e-3))).all():
            worst = int(np.argmax(np.abs(alone - together)))
            raise BadModel(
                f"the model's answer depends on the batch: one row alone scores "
                f"{alone[worst]:.6g}, among {len(rows)} others {together[worst]:.6g}; "
                "it must treat rows one by one (batch norm in eval mode, no ranking)"
            )
        return 2 * len(rows) + len(alone)


def bind(model: Model, codec: Codec) -> Target:
    """A target of a model and the codec of a table; BadModel where the columns do not fit."""
    names = codec.schema.names
    wanted = model.columns
    if wanted is not None:
        absent = [name for name in wanted if name not in names]
        if absent:
            raise BadModel(
                f"the model wants the columns {listed(absent)} that the table lacks; "
                f"the table has {listed(names)}"
            )
        blind = [name for name in codec.schema.protected if name not in wanted]
        if blind:
            raise BadModel(
                f"the model does not take {listed(blind)} as an input, so changing it can flip "
                f"nothing; its columns are {listed(wanted)}"
            )
        codec = codec.select(list(wanted))
    elif model.n_columns is not None and model.n_columns != len(names):
        raise BadModel(
            f"the model wants {model.n_columns} columns and the table has {len(names)} beside "
            f"the target: {listed(names)}"
        )
    if model.takes == "matrix":
        text = [
            c.name
            for c in codec.schema.columns
            if c.kind != "numerical" and c.level_numbers is None
        ]
        if text:
            raise BadModel(
                f"the model takes numbers only, but these columns hold text: {listed(text)}; "
                "give the table as the model was trained on it, or wrap both in a Python function"
            )
    return Target(model, codec)


def _described(inputs: Any) -> str:
    if isinstance(inputs, np.ndarray):
        return f"an array of shape {inputs.shape}"
    names = list(getattr(inputs, "columns", []))
    return f"a {type(inputs).__name__} with {listed(names) if names else 'columns'}"
