"""Keys and verdicts in torch tensors, so that a search can stay on its device.

The same definitions as in `rows` and `check`, for a target that is a torch module and a generator
that decodes there. It runs on torch's CPU device as well, where the tests hold it to the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from limi.decisions import AS_DECIDED, Rule, favors
from limi.errors import BadModel
from limi.generators._base import WithTensors
from limi.generators._counter_rng import mix
from limi.search.check import cause_sets, find_causes
from limi.search.partner import Partner, choose_partner
from limi.search.tried import LEFT, Tried
from limi.table.enforcer import Enforcer
from limi.table.schema import Schema

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
_CLOSED = -np.inf  # the answer of what was not asked; NaN is what says no number
_EXACT = 1 << 53  # whole numbers below it are exact in float64, and so are their sums


class Collision(Exception):
    """Two different keys got one name; another salt gives them two."""


# -- keys -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Packing:
    """Exact keys over the non-protected columns, as few 64-bit words per row as they need.

    Columns with a grid are digits of numbers below 2^53 (mixed radix), so that one matrix product
    in double precision packs them all without rounding; a real column is a word of its own.
    """

    low: Tensor  # (d,)
    step: Tensor | None  # (d,), where a step is not 1
    missing: Tensor | None  # (d,): the digit of a missing cell, where cells may be missing
    weights: Tensor  # (d, w): what a digit counts in each word
    real: tuple[int, ...]  # columns that are words of their own
    protected: tuple[int, ...]
    enforcer: Enforcer  # partners have one key
    salt: int = 0

    @staticmethod
    def of(schema: Schema, device: Any) -> Packing:
        """The packing of a schema."""
        import torch

        real, digits = [], []
        for position in schema.key_index.tolist():
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
            schema.enforcer,
        )

    def words(self, rows: Tensor) -> Tensor:
        """(n, w) int64: equal exactly when the non-protected columns are."""
        import torch

        rows = self.enforcer.canonical(rows)
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
        """(n,) int64: one number per key. Whoever compares names must compare words as well."""
        if words.shape[1] == 1:
            return words[:, 0]
        return (words * self._factors).sum(1)

    @cached_property
    def _factors(self) -> Tensor:
        """An odd number a word, by the salt."""
        import torch

        n_words = self.weights.shape[1] + len(self.real)
        places = np.arange(n_words, dtype=np.int64) + (1 + self.salt) * 64
        return torch.tensor(mix(places) | 1, device=self.low.device)

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
    partner: Tensor  # (n, p): its protected cells
    partner_score: Tensor
    flips: Tensor
    causes: Tensor  # (n,): as `limi.search.check.find_causes` has them; (n, 0) where no one asks
    bits: Tensor  # (n, b): the favorable combinations, as `Checked.bits` has them; (n, 0) where not
    # all of a flipping row could be asked
    queries: int = 0
    closed: int = 0  # combinations that were not asked, because a partner would break a rule
    alone: int = 0  # rows without a partner

    def __len__(self) -> int:
        return len(self.score)

    @staticmethod
    def join(parts: Sequence[Verdicts]) -> Verdicts:
        """Several batches as one."""
        import torch

        fewest = min(part.bits.shape[1] for part in parts)
        parts = [replace(part, bits=part.bits[:, :fewest]) for part in parts]
        by_row = [torch.cat([getattr(part, name) for part in parts]) for name in BY_ROW]
        counts = {
            name: sum(getattr(part, name) for part in parts)
            for name in ("queries", "closed", "alone")
        }
        return replace(Verdicts(*by_row), **counts)


# What a verdict has for each row.
BY_ROW = ("score", "partner", "partner_score", "flips", "causes", "bits")


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
    batch: int = 1 << 18  # rows that the module gets at once, unless fewer are asked for
    decision: Rule = AS_DECIDED

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

        places = self._places(rows)
        groups = [(0, slice(None))]
        if self._may_stray:
            patterns = ((places == LEFT) * self._bits).sum(1)
            groups = [(p, (patterns == p).nonzero()[:, 0]) for p in patterns.unique().tolist()]
        parts: list[Verdicts] = []
        for pattern, here in groups:
            tried = self._try_out(pattern)
            # Mixtures are a row's own, so that a key is asked for them with each of its rows.
            size = max(1, max(at_once, _SETTLED) // len(tried.cells))
            mine = rows[here], places[here]
            for chosen, own in zip(*(part.split(size) for part in mine), strict=True):
                scores = self._ask(chosen, tried, spend, at_once)
                parts.append(self._settle(chosen, scores, tried.find(own), own, tried, partner))
        if not parts:
            return self._nothing(rows)
        verdicts = Verdicts.join(parts)
        if len(groups) > 1:
            order = torch.cat([here for _, here in groups]).argsort()
            told = {name: getattr(verdicts, name)[order] for name in BY_ROW}
            verdicts = replace(verdicts, **told)
        _check_scores(verdicts.score, verdicts.partner_score)
        return verdicts

    def _ask(
        self, rows: Tensor, tried: _TriedThere, spend: Callable[[int], None], at_once: int
    ) -> Tensor:
        """(n, G) scores of rows under all that is tried of them; `_CLOSED` where a rule forbids
        to ask."""
        import torch

        if self.schema.rules:
            return self._ask_ruled(self.schema.enforcer, rows, tried, spend, at_once)
        matrix = self.present(rows)
        asked = matrix[:, None].repeat(1, len(tried.cells), 1)
        cells = tried.presented
        if tried.mixes:
            cells = torch.where(tried.left, asked[:, :, self._protected], cells)
        asked[:, :, self._protected] = cells
        scores = self._scores(asked.view(-1, matrix.shape[1]), spend, at_once)
        return scores.view(-1, len(tried.cells))

    def _ask_ruled(
        self,
        enforcer: Enforcer,
        rows: Tensor,
        tried: _TriedThere,
        spend: Callable[[int], None],
        at_once: int,
    ) -> Tensor:
        import torch

        asked = enforcer.expand(rows, torch.where(tried.left, torch.nan, tried.cells))
        is_open = enforcer.find_open(rows, asked)
        if is_open is None:
            scores = self._scores(self.present(asked.flatten(0, 1)), spend, at_once)
            return scores.view(-1, len(tried.cells))
        scores = rows.new_full(is_open.shape, _CLOSED)
        scores[is_open] = self._scores(self.present(asked[is_open]), spend, at_once)
        return scores

    def _settle(
        self,
        rows: Tensor,
        scores: Tensor,
        own: Tensor,
        places: Tensor,
        tried: _TriedThere,
        rule: Partner,
    ) -> Verdicts:
        """The verdicts of rows with (n, G) scores, of which `own` is theirs."""
        import torch

        closed, alone = None, None
        if self.schema.enforcer.binding:
            closed = scores == _CLOSED
            alone = closed.sum(1) == scores.shape[1] - 1
            counts = {"closed": int(closed.sum()), "alone": int(alone.sum())}
            # What is a row's own decides nothing else.
            scores = torch.where(closed, scores.gather(1, own[:, None]), scores)
        else:
            counts = {}
        counts["queries"] = scores.numel() - counts.get("closed", 0)
        mine = scores.gather(1, own[:, None])[:, 0]
        bits = self._pack(favors(scores))
        if self.decision.kind != "favorable":
            bits = bits[:, :0]
        if scores.shape[1] == 2:
            # Two values and one of them its own: the partner is the other.
            other = 1 - own if alone is None else torch.where(alone, own, 1 - own)
            theirs = scores.gather(1, other[:, None])[:, 0]
            flips = self.decision.differ(mine, theirs)
            return Verdicts(mine, tried.cells[other], theirs, flips, bits[:, :0], bits, **counts)
        candidates = None if closed is None else ~closed
        chosen, flipped, _ = choose_partner(
            scores, mine, own=own, candidates=candidates, rule=rule, decision=self.decision
        )
        if alone is not None:
            chosen = torch.where(alone, own, chosen)
        flips = flipped.any(1)
        if closed is not None and bool((closed.any(1) & flips).any()):
            bits = bits[:, :0]
        theirs = scores.gather(1, chosen[:, None])[:, 0]
        # A row alone would lose a NaN that is neither its own nor its partner's.
        mine = torch.where(scores.isnan().any(1), torch.nan, mine)
        partner = tried.cells[chosen]
        if tried.mixes:
            partner = torch.where(tried.left[chosen], rows[:, self._protected], partner)
        causes = bits[:, :0]
        if self._sets:
            causes = find_causes(self._sets, tried.places, places, flipped).to(torch.uint8)
        return Verdicts(mine, partner, theirs, flips, causes, bits, **counts)

    def _pack(self, decided: Tensor) -> Tensor:
        """(n, b): the first K columns as bits, the first of eight highest."""
        import torch

        weights = self._bit_weights
        return (decided[:, : len(weights)].float() @ weights).to(torch.uint8)

    @cached_property
    def _bit_weights(self) -> Tensor:
        """(K, b): what a combination counts in each byte."""
        import torch

        at = np.arange(len(self.schema.combinations))
        weights = np.zeros((len(at), (len(at) + 7) // 8), dtype=np.float32)
        weights[at, at // 8] = 1 << (7 - at % 8)
        return torch.tensor(weights, device=self.device)

    def _nothing(self, rows: Tensor) -> Verdicts:
        """Verdicts of no rows."""
        import torch

        none = rows.new_zeros(0)
        causes = none.to(torch.uint8) if self._sets else rows.new_zeros((0, 0), dtype=torch.uint8)
        return Verdicts(
            none,
            rows[:0, self._protected],
            none,
            none.bool(),
            causes,
            self._pack(rows.new_zeros((0, len(self._bit_weights))).bool()),
        )

    def _places(self, rows: Tensor) -> Tensor:
        """(n, p): as `Schema.places_of` has them."""
        import torch

        places = []
        for position, (ascending, order) in zip(
            self.schema.protected_index.tolist(), self._values, strict=True
        ):
            cells = rows[:, position].contiguous()
            place = torch.searchsorted(ascending, cells).clamp_(max=len(ascending) - 1)
            places.append(torch.where(ascending[place] == cells, order[place], LEFT))
        return torch.stack(places, 1)

    def _try_out(self, pattern: int) -> _TriedThere:
        """What is tried of rows that stray in this way, as tensors; made once."""
        kept: dict[int, _TriedThere] = vars(self).setdefault("_kept", {})
        if pattern not in kept:
            kept[pattern] = _TriedThere.of(self, Tried.of(self.schema, pattern))
        return kept[pattern]

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
        """May a row hold protected values that are not one of the combinations?"""
        columns = (self.schema.columns[i] for i in self.schema.protected_index)
        pairs = zip(columns, self.schema.protected_codes, strict=True)
        return any(column.missing or len(codes) != column.size for column, codes in pairs)

    @cached_property
    def _sets(self) -> list[tuple[tuple[int, ...], int]]:
        """What causes are identified by, where several columns are protected."""
        return cause_sets(self.schema)

    @cached_property
    def _bits(self) -> Tensor:
        import torch

        return 1 << torch.arange(len(self.schema.protected), device=self.device)


@dataclass(frozen=True, eq=False)
class _TriedThere:
    """`Tried` as tensors."""

    places: Tensor
    cells: Tensor  # (G, p), any number where the own value is left
    left: Tensor  # (G, p)
    mixes: bool  # is any?
    presented: Tensor  # (G, p): the cells as the module receives them
    sizes: Tensor
    order: Tensor

    @staticmethod
    def of(here: OnDevice, tried: Tried) -> _TriedThere:
        import torch

        def there(array: NDArray[Any]) -> Tensor:
            return torch.tensor(array, device=here.device)

        index, schema = here.schema.protected_index, here.schema
        left = np.isnan(tried.cells)
        cells = np.where(left, schema.low[index], tried.cells)
        rows = np.tile(schema.low, (len(cells), 1))
        rows[:, index] = cells
        return _TriedThere(
            there(tried.places),
            there(cells),
            there(left),
            bool(left.any()),
            here.present(there(rows))[:, there(index)],
            there(tried.sizes),
            there(tried.order),
        )

    def find(self, places: Tensor) -> Tensor:
        """Where rows of places (n, p) stand among what is tried."""
        number = places.new_zeros(len(places))
        for column, size in enumerate(self.sizes.tolist()):
            number = number * (size + 1) + places[:, column] + 1
        return self.order[number]


def _check_scores(*scores: Tensor) -> None:
    bad = sum(tensor.isnan().sum() for tensor in scores)
    if len(scores[0]) and int(bad):
        raise BadModel(
            f"the model returned {int(bad)} answers among {len(scores[0])} rows that cannot be "
            "used; answers must be finite, and scores must lie in [0, 1]"
        )
