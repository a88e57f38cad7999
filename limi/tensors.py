"""Keys and verdicts in torch tensors, so that a search can stay on its device.

The same definitions as in `rows` and `check`, for a target that is a torch module and a generator
that decodes there. It runs on torch's CPU device as well, where the tests hold it to the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.check import Partner, _reach
from limi.errors import BadModel
from limi.generators._base import WithTensors
from limi.generators._counter import mixed
from limi.schema import Schema

__all__ = [
    "BY_ROW",
    "Collision",
    "OnDevice",
    "Packing",
    "Seen",
    "Tensor",
    "Verdicts",
    "located",
    "same",
]

Tensor: TypeAlias = Any

_SETTLED = 1 << 22  # answers judged at once
_EXACT = 1 << 53  # whole numbers below it are exact in float64, and so are their sums


class Collision(Exception):
    """Two different keys got one name; another salt gives them two."""


# -- keys -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Packing:
    """Exact keys over the non-protected columns, as few 64-bit words a row as they need.

    Columns with a grid are digits of numbers below 2^53 (mixed radix), so that one matrix product
    in double precision packs them all without rounding; a real column is a word of its own.
    """

    low: Tensor  # (d,)
    step: Tensor | None  # (d,), where a step is not 1
    missing: Tensor | None  # (d,): the digit of a missing cell, where cells may be missing
    weights: Tensor  # (d, w): what a digit counts in each word
    real: tuple[int, ...]  # columns that are words of their own
    protected: tuple[int, ...]
    salt: int = 0

    @staticmethod
    def of(schema: Schema, device: Any) -> Packing:
        """The packing of a schema."""
        import torch

        real, digits = [], []
        for position in schema.free_index.tolist():
            column = schema.columns[position]
            n_values = column.size + column.missing
            if column.size == 0 or n_values >= _EXACT:
                real.append(position)
            elif n_values > 1:
                digits.append((position, n_values))
        words: list[NDArray[np.float64]] = []
        total = _EXACT
        for position, n_values in digits:
            if total * n_values > _EXACT:
                words.append(np.zeros(len(schema)))
                total = 1
            words[-1][position] = total
            total *= n_values
        if not words and not real:
            words.append(np.zeros(len(schema)))
        grid = np.isin(np.arange(len(schema)), [position for position, _ in digits])
        step = np.where(grid, schema.step, 1.0)
        # Cells of other columns count nothing, but NaN times nothing is not nothing.
        missing = np.where(grid, schema.sizes, 0.0)
        whole = (step == 1).all() and (schema.low[grid] % 1 == 0).all()

        def there(array: NDArray[Any]) -> Tensor:
            return torch.tensor(array, device=device)

        return Packing(
            there(np.where(grid, schema.low, 0.0)),
            None if whole else there(step),
            there(missing) if (schema.may_miss | ~grid).any() else None,
            there(np.array(words).reshape(len(words), len(schema)).T),
            tuple(real),
            tuple(schema.protected_index.tolist()),
        )

    def words(self, rows: Tensor) -> Tensor:
        """(n, w) int64: equal exactly when the non-protected columns are."""
        import torch

        digits = rows - self.low
        if self.step is not None:
            digits = digits.div_(self.step).round_()
        if self.missing is not None:
            digits = torch.where(rows.isnan(), self.missing, digits)
        packed = (digits @ self.weights).long()
        if not self.real:
            return packed
        cells = rows[:, list(self.real)] + 0.0  # turns -0.0 into 0.0
        cells = torch.where(cells.isnan(), torch.nan, cells)  # all NaN are the same missing value
        return torch.cat([packed, cells.contiguous().view(torch.int64)], 1)

    def names(self, words: Tensor) -> Tensor:
        """(n,) int64: one number a key. Whoever compares names must compare words as well."""
        if words.shape[1] == 1:
            return words[:, 0]
        return (words * self._factors).sum(1)

    @cached_property
    def _factors(self) -> Tensor:
        """An odd number a word, by the salt."""
        import torch

        n_words = self.weights.shape[1] + len(self.real)
        places = np.arange(n_words, dtype=np.int64) + (1 + self.salt) * 64
        return torch.tensor(mixed(places) | 1, device=self.low.device)

    @property
    def named_exactly(self) -> bool:
        """Is a name its key?"""
        return bool(self.weights.shape[1] + len(self.real) == 1)


class Seen:
    """Keys of earlier blocks, sorted by name."""

    def __init__(self, packing: Packing) -> None:
        self.packing = packing
        self.names: Tensor | None = None
        self.words: Tensor | None = None

    def __len__(self) -> int:
        return 0 if self.names is None else len(self.names)

    def contains(self, names: Tensor, words: Tensor) -> Tensor:
        """Which keys are among them."""
        import torch

        if self.names is None:
            return torch.zeros(len(names), dtype=torch.bool, device=names.device)
        at, found = located(self.names, names)
        if not self.packing.named_exactly:
            same(words, self.words[at], found)  # type: ignore[index]
        return found

    def add(self, words: Tensor) -> None:
        """Add keys that are distinct and not among them yet."""
        import torch

        if self.words is not None:
            words = torch.cat([self.words, words])
        names, order = self.packing.names(words).sort()
        if not self.packing.named_exactly and bool((names[1:] == names[:-1]).any()):
            raise Collision
        self.names, self.words = names, words[order]

    def salt(self) -> None:
        """Give all keys other names, until each has its own."""
        self.packing = replace(self.packing, salt=self.packing.salt + 1)
        words, self.words = self.words, None
        if words is not None:
            try:
                self.add(words)
            except Collision:
                self.words = words
                self.salt()


def located(ascending: Tensor, names: Tensor) -> tuple[Tensor, Tensor]:
    """Where each name stands first among ascending ones, and whether it does."""
    import torch

    at = torch.searchsorted(ascending, names).clamp_(max=max(len(ascending) - 1, 0))
    if not len(ascending):
        return at, torch.zeros(len(names), dtype=torch.bool, device=names.device)
    return at, ascending[at] == names


def same(words: Tensor, others: Tensor, where: Tensor | None = None) -> None:
    """Collision where words that have one name differ."""
    differ = (words != others).any(1)
    if bool((differ if where is None else differ & where).any()):
        raise Collision


# -- the target -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What the oracle says of rows; tensors of their device."""

    score: Tensor
    partner: Tensor  # the combination
    partner_score: Tensor
    flips: Tensor
    flipped: Tensor  # (n, K): which combinations decide otherwise; (n, 0) where no one asks
    own: Tensor  # the combination that the row holds, -1 for none of them
    queries: int = 0


# What a verdict has for each row.
BY_ROW = ("score", "partner", "partner_score", "flips", "flipped", "own")


@dataclass(frozen=True, eq=False)
class OnDevice:
    """A target and a generator on one device: codes in, scores and verdicts out, all tensors."""

    schema: Schema
    forward: Callable[[Tensor], Tensor]  # what the module says of presented rows
    read: Callable[[Tensor], Tensor]  # its scores, in float64; NaN where it says no number
    dtype: Any  # of presented rows
    generator: WithTensors
    numbers: tuple[tuple[int, Tensor], ...] = ()  # columns whose levels stand for other numbers
    chunk: int = 1 << 16  # latents probed at once
    batch: int = 1 << 18  # rows that the module gets at once, unless fewer are wished for

    @property
    def device(self) -> Any:
        """Where it all is."""
        return self.generator.device

    @cached_property
    def packing(self) -> Packing:
        """How keys are packed."""
        return Packing.of(self.schema, self.device)

    def present(self, rows: Tensor) -> Tensor:
        """What the module is given for these codes, as `Target.present` gives it."""
        import torch

        matrix = rows.to(self.dtype, copy=True)
        for position, table in self.numbers:
            cells = rows[:, position]
            level = torch.where(cells.isnan(), len(table) - 1.0, cells).long()
            matrix[:, position] = table[level].to(self.dtype)
        return matrix

    def ask(self, rows: Tensor, spend: Callable[[int], None], at_once: int) -> Tensor:
        """(n,) scores of rows as they are; `spend` is told of queries before they are asked."""
        scores = self._scores(self.present(rows), spend, at_once)
        _check_scores(scores)
        return scores

    def _scores(self, matrix: Tensor, spend: Callable[[int], None], at_once: int) -> Tensor:
        """(n,) scores of presented rows, of which the module gets so many at once."""
        import torch

        if not len(matrix):
            return matrix.new_zeros(0).double()
        raw = []
        for part in matrix.split(at_once):
            spend(len(part))
            raw.append(self.forward(part))
        return self.read(torch.cat(raw) if len(raw) > 1 else raw[0])

    def check(
        self, rows: Tensor, spend: Callable[[int], None], at_once: int, partner: Partner = "widest"
    ) -> Verdicts:
        """Verdicts of rows with distinct keys, as `check_rows` gives them."""
        import torch

        n, k = len(rows), len(self._combinations)
        own = self._own(rows)
        matrix = self.present(rows)
        mine = torch.zeros(n, dtype=torch.float64, device=rows.device)
        queries = n * k
        if self._may_stray:
            stray = (own < 0).nonzero()[:, 0]
            mine[stray] = self.ask(rows[stray], spend, at_once)
            queries += len(stray)
        parts = []
        size = max(1, max(at_once, _SETTLED) // k)
        for start in range(0, n, size):
            part = slice(start, start + size)
            asked = matrix[part, None].repeat(1, k, 1)
            asked[:, :, self._protected] = self._presented
            scores = self._scores(asked.view(-1, matrix.shape[1]), spend, at_once).view(-1, k)
            parts.append(self._settled(scores, own[part], mine[part], partner))
        if not parts:
            parts = [self._settled(mine[:, None].expand(0, k), own, mine, partner)]
        score, chosen, theirs, flips, flipped = map(torch.cat, zip(*parts, strict=True))
        _check_scores(score, theirs)
        return Verdicts(score, chosen, theirs, flips, flipped, own, queries)

    def _settled(
        self, scores: Tensor, own: Tensor, mine: Tensor, rule: Partner
    ) -> tuple[Tensor, ...]:
        """Score, partner, its score, flips and flipped of rows with (n, K) scores."""
        import torch

        decided = scores > 0.5
        if scores.shape[1] == 2 and not self._may_stray:
            # Two values and one of them its own: the partner is the other.
            both = scores.gather(1, torch.stack([own, 1 - own], 1))
            flips = decided[:, 0] != decided[:, 1]
            return both[:, 0], 1 - own, both[:, 1], flips, decided[:, :0]
        inside = own >= 0
        held = own.clamp(min=0)[:, None]
        mine = torch.where(inside, scores.gather(1, held)[:, 0], mine)
        flipped = decided != (mine > 0.5)[:, None]
        gap = torch.round((scores - mine[:, None]).abs_(), decimals=6)
        theirs = gap.gather(1, held)
        gap.scatter_(1, held, torch.where(inside[:, None], -1.0, theirs))
        flips = flipped.any(1)
        if rule == "first":
            chosen = torch.where(flips, flipped.byte().argmax(1), gap.argmax(1))
        else:
            chosen = torch.where(flipped, gap + 2.0, gap).argmax(1)
        theirs = scores.gather(1, chosen[:, None])[:, 0]
        # A row alone would lose a NaN that is neither its own nor its partner's.
        lost = scores.isnan().any(1)
        mine = torch.where(lost, torch.nan, mine)
        kept = flipped if self.reach is not None else flipped[:, :0]
        return mine, chosen, theirs, flips, kept

    def _own(self, rows: Tensor) -> Tensor:
        """(n,): which combination each row holds, -1 where it holds none."""
        import torch

        found = torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
        known = torch.ones(len(rows), dtype=torch.bool, device=rows.device)
        for position, (ascending, order) in zip(
            self.schema.protected_index.tolist(), self._values, strict=True
        ):
            cells = rows[:, position].contiguous()
            place = torch.searchsorted(ascending, cells).clamp_(max=len(ascending) - 1)
            known &= ascending[place] == cells
            found = found * len(ascending) + order[place]
        return torch.where(known, found, -1)

    @cached_property
    def _combinations(self) -> Tensor:
        import torch

        return torch.tensor(self.schema.combinations, device=self.device)

    @cached_property
    def _presented(self) -> Tensor:
        """(K, p): the protected cells of each combination as the module receives them."""
        import torch

        rows = np.tile(self.schema.low, (len(self.schema.combinations), 1))
        rows[:, self.schema.protected_index] = self.schema.combinations
        return self.present(torch.tensor(rows, device=self.device))[:, self._protected]

    @cached_property
    def _protected(self) -> Tensor:
        import torch

        return torch.tensor(self.schema.protected_index, device=self.device)

    @cached_property
    def _values(self) -> list[tuple[Tensor, Tensor]]:
        import torch

        codes = [torch.tensor(c, device=self.device) for c in self.schema.protected_codes]
        return [tuple(c.double().sort()) for c in codes]

    @cached_property
    def _may_stray(self) -> bool:
        """May a row hold protected values that are none of the combinations?"""
        columns = (self.schema.columns[i] for i in self.schema.protected_index)
        pairs = zip(columns, self.schema.protected_codes, strict=True)
        return any(column.missing or len(codes) != column.size for column, codes in pairs)

    @cached_property
    def reach(self) -> NDArray[np.bool_] | None:
        """What `limi.check` tells causes by, where several columns are protected."""
        return _reach(self.schema)


def _check_scores(*scores: Tensor) -> None:
    bad = sum(tensor.isnan().sum() for tensor in scores)
    if len(scores[0]) and int(bad):
        raise BadModel(
            f"the model returned {int(bad)} scores among {len(scores[0])} rows that are no numbers "
            "in [0, 1]; scores must be finite"
        )
