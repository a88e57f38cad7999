"""The twin question, measured: who would be decided differently as their twin of another group.

Gains less losses of any fair matching of two groups is the gap between their rates, so a number of
changed decisions alone says little. Beside it stand the gap and how much of it the twins account
for, the same between groups drawn at random (placebo), which columns carry it, what remains where
some columns may differ, and how much depends on the draw, the table and the order of the columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from limi.decisions import favors
from limi.defaults import DEFAULT_GENERATOR
from limi.generators import WithDensity
from limi.metrics._rate import Rate, clopper_pearson, rate_of
from limi.search.session import Session
from limi.search.steadiness import Steadiness
from limi.streams import Stream
from limi.system.watch import OutOfTime
from limi.table.schema import Schema
from limi.twins.answers import Carrier, Direction, Group, Kept, KeptBy, TwinExample, Twins
from limi.twins.carriers import MOST_CARRIERS, find_carriers, share_out
from limi.twins.effort import DRAWS, MOST_OTHERS, REFITS, Effort, directions
from limi.twins.groups import Groups, find_groups
from limi.twins.maker import TwinMaker, check_keep, learn
from limi.twins.questions import Questions, Spent, cells_differ
from limi.types import Index, Mask, Rows, Scores

__all__ = ["SURE", "measure"]

SURE = 0.9
"""Share of a person's draws that must change their decision before it is shown as an example."""

_MOST_REFIT_ROWS = 20_000  # of a table that is only drawn again, or put in another order
_STRONGEST = 3  # carriers that are kept one after another
_EXAMPLES = 3  # of a direction
_CLEAR = 2.0  # standard errors that a gap must have before anything is held against it


def measure(
    session: Session,
    people: Rows,
    seed: int,
    *,
    keep: Sequence[str] = (),
    unseen: Sequence[str] = (),
    population: str = "real",
    generator: str = DEFAULT_GENERATOR,
    effort: Effort | None = None,
    told: Steadiness | None = None,
    on_step: Callable[[float], None] = lambda done: None,
) -> Twins:
    """Ask the twin question about people, with twins learned from the session's table.

    All questions go through the session and end with its budget; parts that it leaves no room for
    are named in the notes. `unseen` are the columns that the model does not take.
    """
    check_keep(session.schema, keep)
    groups = find_groups(session.schema, session.rows)
    blank = Twins(
        session.schema.protected, tuple(unseen), tuple(keep), population, generator, groups=()
    )
    inquiry = _Inquiry.begin(
        session, people, seed, groups, tuple(keep), tuple(unseen), generator, effort, told
    )
    if not inquiry.effort.people:
        return replace(blank, reason=_why_nobody(session))
    parts = (
        (inquiry.ask_twins, ""),
        (inquiry.ask_placebo, "the placebo"),
        (inquiry.refit_tables, "how much the rates depend on the table"),
        (inquiry.find_carriers, "carriers"),
        (inquiry.keep_columns, "what remains where columns may differ"),
        (inquiry.draw_again, "how sure single verdicts are"),
        (inquiry.refit_orders, "other orders of the columns"),
    )
    missing: list[str] = []
    spent = False
    for number, (part, words) in enumerate(parts):
        try:
            if spent or not part():
                missing.append(words)
        except (Spent, OutOfTime):
            spent = True
            # It had begun: some of it may be known. A placebo is known as a whole or not at all.
            missing.append(f"all of {words}" if number > 1 else words)
        on_step((number + 1) / len(parts))
        if missing and not words:
            why = "the budget of queries or seconds ended before the rates were known"
            return replace(blank, queries=inquiry.questions.asked, reason=why)
    return inquiry.told(blank, missing)


@dataclass
class _Way:
    """One direction: people of a group, their twins of another, and what came of it."""

    own: int
    goal: int
    people: Rows
    scores: Scores
    first: Rows  # people whom every maker is asked about
    twins: Rows = field(default_factory=lambda: np.empty((0, 0)))
    first_kept: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    gains: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    losses: Mask = field(default_factory=lambda: np.zeros(0, dtype=bool))
    again: list[NDArray[np.int8]] = field(default_factory=list)  # verdicts with tables drawn again
    orders: list[NDArray[np.int8]] = field(default_factory=list)  # and with other orders
    carriers: tuple[Carrier, ...] = ()
    n_carried: int = 0
    kept: list[tuple[tuple[str, ...], KeptBy, int, int, int]] = field(default_factory=list)
    verdicts: NDArray[np.int8] | None = None  # (people, draws): 1 a gain, -1 a loss
    examples: tuple[TwinExample, ...] = ()
    no_twin: int = 0

    def keep(self, found: Mask) -> None:
        """Leave out the people who have no twin."""
        self.no_twin = int((~found).sum())
        self.first_kept = found[: len(self.first)]
        self.people, self.scores = self.people[found], self.scores[found]
        self.twins = self.twins[found]

    @property
    def mainly_gains(self) -> bool:
        """Are more decisions gained than lost?"""
        return bool(self.gains.sum() >= self.losses.sum())

    def goals(self, n: int) -> Index:
        """The goal of each of n people."""
        return np.full(n, self.goal, dtype=np.intp)


def _why_nobody(session: Session) -> str:
    """Why the budget lets nobody be asked."""
    if session.queries_left > session.watch.affordable:
        return "no time was left for them"
    return f"the budget leaves {max(0, int(session.queries_left)):,} questions for them"


@dataclass
class _Inquiry:
    """The twin question at work; each part is a method that says whether it was asked."""

    session: Session
    seed: int
    groups: Groups
    keep: tuple[str, ...]
    unseen: tuple[str, ...]
    generator: str
    effort: Effort
    questions: Questions
    members: list[Rows]  # people of each group that are asked
    scores: list[Scores]
    ways: list[_Way]
    maker: TwinMaker | None = None
    placebo: tuple[int, int] | None = None
    fit_seconds: float = 0.0

    @staticmethod
    def begin(
        session: Session,
        people: Rows,
        seed: int,
        groups: Groups,
        keep: tuple[str, ...],
        unseen: tuple[str, ...],
        generator: str,
        effort: Effort | None,
        told: Steadiness | None,
    ) -> _Inquiry:
        """Choose who is asked: as many of each group as the budget has questions for."""
        seen = np.array(
            [j for j, name in enumerate(session.schema.names) if name not in unseen], dtype=np.intp
        )
        questions = Questions(session, seen, told, _stream(seed, 0))
        allowed = min(session.queries_left, session.watch.affordable)
        sized = (effort or Effort()).within(allowed, directions(len(groups)))
        own, rng = groups.of(people), _stream(seed, 1)
        members = []
        for number in range(len(groups)):
            # In an order of chance, so that the first of them stand for all.
            places = rng.permutation(np.flatnonzero(own == number))
            members.append(people[places[: sized.people]])
        return _Inquiry(
            session, seed, groups, keep, unseen, generator, sized, questions, members, [], []
        )

    @property
    def schema(self) -> Schema:
        return self.session.schema

    @property
    def table(self) -> Rows:
        return self.session.rows

    # -- parts --------------------------------------------------------------------------

    def ask_twins(self) -> bool:
        """The rates: one draw of each person's twin."""
        self.maker = self._learn(self.table, _stream(self.seed, 2))
        self.scores = [self.questions.score(rows) for rows in self.members]
        for own, goal in self._directions():
            some, members = self.effort.again, self.members[own]
            way = _Way(own, goal, members, self.scores[own], members[:some])
            others = members[some:]
            draws = _stream(self.seed, 3, own, goal)
            way.twins = np.concatenate(
                [
                    self._make_first(self.maker, way),
                    self.maker.make(others, way.goals(len(others)), draws),
                ]
            )
            way.keep(self.maker.found(way.twins, way.goals(len(way.people))))
            way.gains, way.losses = self.questions.compare(way.people, way.scores, way.twins)
            self.ways.append(way)
        return True

    def _directions(self) -> list[tuple[int, int]]:
        """Each group and the one decided favorably most often, both ways, the widest gap first."""
        rates = np.array([favors(s).mean() if len(s) else -1.0 for s in self.scores])
        best = int(rates.argmax())
        others = [g for g in np.argsort(rates, kind="stable").tolist() if g != best]
        known = [g for g in others if len(self.members[g])][:MOST_OTHERS]
        return [pair for g in known for pair in ((g, best), (best, g))]

    def ask_placebo(self) -> bool:
        """The same between groups drawn at random: protected values shuffled, learned again.

        What the model sees of a person's own group stays as it is.
        """
        rng, index = _stream(self.seed, 4), self.schema.protected_index
        table = self.table.copy()
        table[:, index] = table[rng.permutation(len(table))][:, index]
        maker = self._learn(table, rng)
        people, scores = np.concatenate(self.members), np.concatenate(self.scores)
        shuffled = people.copy()
        shuffled[:, index] = people[rng.permutation(len(people))][:, index]
        own, flips, n = self.groups.of(shuffled), 0, 0
        for number, way in enumerate(self.ways):
            here = np.flatnonzero(own == way.own)
            draws = _stream(self.seed, 5, number)
            twins = maker.make(shuffled[here], way.goals(len(here)), draws)
            twins[:, index] = people[here][:, index]
            changed = self.questions.compare(people[here], scores[here], twins)
            flips, n = flips + int(np.sum(changed)), n + len(here)
        self.placebo = (flips, n)
        return True

    def refit_tables(self) -> bool:
        """The rates with twins learned from tables drawn again, row by row with replacement."""
        if not self.effort.again:
            return False
        for number in range(REFITS):
            rng = _stream(self.seed, 6, number)
            drawn = self.table[rng.integers(0, len(self.table), self._refit_rows)]
            maker = self._learn(drawn, rng)
            for way in self.ways:
                way.again.append(self._verdicts(maker, way))
        return True

    def refit_orders(self) -> bool:
        """The rates with the columns behind the protected ones in other orders."""
        if not self.effort.again:
            return False
        rng = _stream(self.seed, 7)
        some = self.table[np.sort(rng.permutation(len(self.table))[: self._refit_rows])]
        for _ in range(REFITS):
            order = rng.permutation(self.schema.names).tolist()
            maker = self._learn(some, rng, order=order)
            for way in self.ways:
                way.orders.append(self._verdicts(maker, way))
        return True

    def find_carriers(self) -> bool:
        """The share of each carrier in the decisions that change."""
        if not self.effort.carried:
            return False
        columns = [int(j) for j in self.questions.seen]
        found = find_carriers(self.schema, self.table, columns)
        for number, way in enumerate(self.ways):
            rng = _stream(self.seed, 8, number)
            changed = np.flatnonzero(way.gains if way.mainly_gains else way.losses)
            some = np.sort(rng.permutation(changed)[: self.effort.carried])
            if not len(some):
                continue
            rows, twins = way.people[some], way.twins[some]
            groups = _most_moved(found, rows, twins)
            shares = share_out(
                self.questions.score, rows, twins, groups, rng, favorably=way.mainly_gains
            )
            way.n_carried = len(some)
            way.carriers = self._tell_carriers(groups, shares)
        return True

    def keep_columns(self) -> bool:
        """The rates where columns stay: the user's, and those of the strongest carriers."""
        if not self.effort.kept:
            return False
        for number, (columns, why) in enumerate(self._kept_sets()):
            maker = self._learn(self.table, _stream(self.seed, 9, number), keep=columns)
            for place, way in enumerate(self.ways):
                some = slice(0, self.effort.kept)
                rows, scores = way.people[some], way.scores[some]
                draws = _stream(self.seed, 10, number, place)
                goals = way.goals(len(rows))
                twins = maker.make(rows, goals, draws)
                found = maker.found(twins, goals)
                if found.any():
                    gains, losses = self.questions.compare(rows[found], scores[found], twins[found])
                    counts = (int(gains.sum()), int(losses.sum()), int(found.sum()))
                    way.kept.append((columns, why, *counts))
        return True

    def draw_again(self) -> bool:
        """Many twins of some people: how far single verdicts agree, and examples."""
        if not self.effort.drawn or self.maker is None:
            return False
        for number, way in enumerate(self.ways):
            rng = _stream(self.seed, 11, number)
            some = np.sort(rng.permutation(len(way.people))[: self.effort.drawn])
            rows, scores = way.people[some], way.scores[some]
            many, own_scores = np.repeat(rows, DRAWS, axis=0), np.repeat(scores, DRAWS)
            twins = self.maker.make(many, way.goals(len(many)), rng)
            gains, losses = self.questions.compare(many, own_scores, twins)
            way.verdicts = (gains.astype(np.int8) - losses.astype(np.int8)).reshape(-1, DRAWS)
            way.examples = self._examples(
                way, rows, scores, twins.reshape(*rows.shape[:1], DRAWS, -1)
            )
        return True

    # -- parts of parts -----------------------------------------------------------------

    def _learn(
        self,
        table: Rows,
        rng: np.random.Generator,
        *,
        keep: Sequence[str] = (),
        order: Sequence[str] | None = None,
    ) -> TwinMaker:
        """Twins of a table; OutOfTime where the last fit took more than is left."""
        watch = self.session.watch
        watch.look()
        if watch.limited and watch.left < self.fit_seconds:
            raise OutOfTime
        start = watch.seconds
        made = learn(
            table,
            self.schema,
            rng,
            keep=keep,
            order=order,
            groups=self.groups,
            generator=self.generator,
        )
        self.fit_seconds = watch.seconds - start
        return made

    @property
    def _refit_rows(self) -> int:
        return min(len(self.table), _MOST_REFIT_ROWS)

    def _make_first(self, maker: TwinMaker, way: _Way) -> Rows:
        """Twins of the first people, by the same draws for every maker.

        So makers differ by what they learned alone, and not by the luck of their draws as well.
        """
        draws = _stream(self.seed, 12, way.own, way.goal)
        return maker.make(way.first, way.goals(len(way.first)), draws)

    def _verdicts(self, maker: TwinMaker, way: _Way) -> NDArray[np.int8]:
        """1 for a gain and -1 for a loss, of those of the first people who are asked."""
        twins = self._make_first(maker, way)[way.first_kept]
        rows = way.people[: len(twins)]
        gains, losses = self.questions.compare(rows, way.scores[: len(twins)], twins)
        return gains.astype(np.int8) - losses.astype(np.int8)

    def _kept_sets(self) -> list[tuple[tuple[str, ...], KeptBy]]:
        """Sets of columns to keep, each once."""
        sets: list[tuple[tuple[str, ...], KeptBy]] = [(self.keep, "asked")] if self.keep else []
        grown: tuple[str, ...] = ()
        strongest = [
            carrier
            for carrier in self.ways[0].carriers
            if carrier.share > 0 and not set(carrier.columns) & set(self.schema.protected)
        ]
        for carrier in strongest[:_STRONGEST]:
            grown = (*grown, *carrier.columns)
            if set(grown) not in [set(columns) for columns, _ in sets]:
                sets.append((grown, "carriers"))
        return sets

    def _tell_carriers(
        self, groups: Sequence[tuple[int, ...]], shares: NDArray[np.float64]
    ) -> tuple[Carrier, ...]:
        n, names = len(shares), self.schema.names
        errors = (
            (shares.std(axis=0, ddof=1) / math.sqrt(n)).tolist() if n > 1 else [None] * len(groups)
        )
        told = [
            Carrier(tuple(names[j] for j in columns), float(share), error)
            for columns, share, error in zip(groups, shares.mean(axis=0), errors, strict=True)
        ]
        return tuple(sorted(told, key=lambda carrier: -round(carrier.share, 6)))

    def _examples(
        self, way: _Way, rows: Rows, scores: Scores, twins: NDArray[np.float64]
    ) -> tuple[TwinExample, ...]:
        """People whose decision changes in nearly all draws, beside the likeliest such twin."""
        assert way.verdicts is not None
        assert self.maker is not None
        wanted = 1 if way.mainly_gains else -1
        share = (way.verdicts == wanted).mean(axis=1)
        order = np.argsort(-share, kind="stable")
        sure = order[share[order] >= SURE][:_EXAMPLES]
        shown = []
        for place in sure.tolist():
            able = np.flatnonzero(way.verdicts[place] == wanted)
            drawn = twins[place, able]
            generator = self.maker.generator
            likely = generator.log_prob(drawn) if isinstance(generator, WithDensity) else [0.0]
            twin = drawn[[int(np.argmax(np.round(likely, 6)))]]
            fields = tuple(
                (column.name, column.show(float(mine)), column.show(float(theirs)))
                for column, mine, theirs in zip(
                    self.schema.columns, rows[place], twin[0], strict=True
                )
            )
            score = self.questions.score(twin)
            shown.append(
                TwinExample(
                    self.groups.names[way.own],
                    self.groups.names[way.goal],
                    fields,
                    float(scores[place]),
                    float(score[0]),
                    float(share[place]),
                )
            )
        return tuple(shown)

    # -- what it comes to ---------------------------------------------------------------

    def told(self, blank: Twins, missing: Sequence[str]) -> Twins:
        """All answers in words and numbers."""
        names = self.groups.names
        groups = tuple(
            Group(name, int(count), rate_of(int(favors(scores).sum()), len(scores)))
            for name, count, scores in zip(names, self.groups.counts, self.scores, strict=True)
        )
        notes = []
        if self.groups.small:
            listed = ", ".join(f"{name} ({n:,})" for name, n in self.groups.small)
            notes.append(f"too few people to have twins: {listed}")
        compared = {way.own for way in self.ways}
        left = [name for number, name in enumerate(names) if number not in compared]
        if left:
            notes.append(f"not compared, because there are too many groups: {', '.join(left)}")
        if missing:
            notes.append(f"the budget was too small for {', '.join(missing)}")
        return replace(
            blank,
            groups=groups,
            directions=tuple(self._tell(way) for way in self.ways),
            placebo=None if self.placebo is None else rate_of(*self.placebo),
            examples=tuple(example for way in self.ways for example in way.examples),
            queries=self.questions.asked,
            notes=tuple(notes),
        )

    def _tell(self, way: _Way) -> Direction:
        n = len(way.people)
        rates = [favors(self.scores[group]).mean() for group in (way.own, way.goal)]
        sizes = [len(self.scores[group]) for group in (way.own, way.goal)]
        gap = float(rates[1] - rates[0])
        gap_error = math.sqrt(sum(p * (1 - p) / m for p, m in zip(rates, sizes, strict=True)))
        net = float(way.gains.mean() - way.losses.mean())
        errors = self._fit_errors(way)
        agreement, sure = _agree(way.verdicts)
        return Direction(
            self.groups.names[way.own],
            self.groups.names[way.goal],
            n,
            gains=_reaching(_widened(int(way.gains.sum()), n, errors[0]), gap - net),
            losses=_reaching(_widened(int(way.losses.sum()), n, errors[1]), net - gap),
            net=net,
            gap=gap,
            gap_error=gap_error,
            coverage=net / gap if abs(gap) > _CLEAR * gap_error else None,
            no_twin=way.no_twin,
            fit_error=errors[0],
            orders=_of_everyone(way),
            agreement=agreement,
            sure=sure,
            carried="gains" if way.mainly_gains else "losses",
            n_carried=way.n_carried,
            carriers=way.carriers,
            kept=tuple(
                Kept(
                    columns,
                    why,
                    _like(way.gains, gains, m, errors[0]),
                    _like(way.losses, losses, m, errors[1]),
                )
                for columns, why, gains, losses, m in way.kept
            ),
            moved=self._moved(way),
        )

    def _fit_errors(self, way: _Way) -> tuple[float, float] | tuple[None, None]:
        """Standard deviations of gains and of losses over tables drawn again.

        What varies from person to person alone is taken out: it is in the exact interval already.
        """
        if len(way.again) < 2:
            return None, None
        verdicts = np.array(way.again)
        # A table of fewer rows varies more, by the root of their number.
        scale = math.sqrt(self._refit_rows / len(self.table))
        return scale * _spread(verdicts > 0), scale * _spread(verdicts < 0)

    def _moved(self, way: _Way) -> dict[str, float]:
        other = cells_differ(way.people, way.twins).mean(axis=0)
        return {
            name: round(float(share), 6)
            for name, share in zip(self.schema.names, other, strict=True)
            if share > 0
        }


def _stream(seed: int, *key: int) -> np.random.Generator:
    return Stream.TWINS.rng(seed, *key)


def _of_everyone(way: _Way) -> tuple[float, ...]:
    """Shares in other orders: of some people, moved by how these differ from everyone asked."""
    changed = way.gains if way.mainly_gains else way.losses
    kind = 1 if way.mainly_gains else -1
    return tuple(
        max(
            0.0, float((verdicts == kind).mean() + changed.mean() - changed[: len(verdicts)].mean())
        )
        for verdicts in way.orders
    )


def _spread(changed: Mask) -> float:
    """Standard deviation of a share over fits, of (fits, people): without the people's own part."""
    total = changed.mean(axis=1).var(ddof=1)
    own = changed.var(axis=0, ddof=1).mean() / changed.shape[1]
    return math.sqrt(max(0.0, float(total - own)))


def _like(changed: Mask, hits: int, n: int, fit_error: float | None) -> Rate:
    """A share with columns kept; fits move it as they move the one without, at its size."""
    if fit_error is None:
        return _widened(hits, n, None)
    usual, share = float(changed.mean()), hits / max(n, 1)
    most = math.sqrt(usual * (1 - usual)) or 1.0
    return _widened(hits, n, fit_error * min(1.0, math.sqrt(share * (1 - share)) / most))


def _widened(hits: int, n: int, fit_error: float | None) -> Rate:
    """A share whose interval has people, draws and the table in it that twins were learned from.

    Half of the exact interval and of that of the fits are added as independent errors are.
    """
    from scipy.special import stdtrit  # late: it takes 0.15 s

    rate = rate_of(hits, n)
    if fit_error is None or not n:
        return rate
    low, high = clopper_pearson(hits, n)
    reach = float(stdtrit(REFITS - 1, 0.975)) * fit_error
    return Rate(
        rate.estimate,
        max(0.0, rate.estimate - math.hypot(rate.estimate - low, reach)),
        min(1.0, rate.estimate + math.hypot(high - rate.estimate, reach)),
        n,
    )


def _reaching(rate: Rate, missing: float) -> Rate:
    """The interval with what twins leave unexplained of the gap.

    Gains less losses of true twins are the gap. What these lack of it they have not learned of so
    small a group, or have learned too much of: gains may be higher by as much, or losses lower.
    """
    low, high = rate.low + min(0.0, missing), rate.high + max(0.0, missing)
    return replace(rate, low=max(0.0, low), high=min(1.0, high))


def _agree(verdicts: NDArray[np.int8] | None) -> tuple[float | None, Rate | None]:
    """The chance that two draws of a person agree, and how many people nearly all draws change."""
    if verdicts is None or not len(verdicts):
        return None, None
    draws = verdicts.shape[1]
    counts = np.stack([(verdicts == kind).sum(axis=1) for kind in (-1, 0, 1)])
    pairs = (counts * (counts - 1)).sum(axis=0) / (draws * (draws - 1))
    sure = np.maximum(counts[0], counts[2]) >= SURE * draws
    return float(pairs.mean()), rate_of(int(sure.sum()), len(sure))


def _most_moved(
    groups: Sequence[tuple[int, ...]], rows: Rows, twins: Rows
) -> list[tuple[int, ...]]:
    """Carriers that move at all; of very many, those that move least are one."""
    other = cells_differ(rows, twins)
    moves = [int(other[:, list(columns)].any(axis=1).sum()) for columns in groups]
    order = sorted(range(len(groups)), key=lambda place: -moves[place])
    able = [place for place in order if moves[place]]
    first = sorted(able[: MOST_CARRIERS - 1]) if len(able) > MOST_CARRIERS else sorted(able)
    rest = tuple(j for place in able if place not in first for j in groups[place])
    return [*(groups[place] for place in first), *([rest] if rest else [])]
