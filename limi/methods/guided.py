"""Natural rows that learned models of the target expect to flip.

Each round learns from everything asked so far, draws many natural rows without asking the target,
guesses for each how likely its decision flips, and checks rows drawn with a probability that grows
with the guess. A share of plain natural rows keeps the guesses honest.

Most candidates are *neighbours* of earlier findings: the latent of a finding with one of its
numbers drawn again. Latents are independent numbers, so that a neighbour of a natural row is as
natural, and what flips a decision often flips it there as well. Neighbours have no neighbours of
their own; otherwise the search would run away with the few kinds of people it found first.

How the guesses are learned is told in `_guessing.py`. Where flips are rare (fewer than one of 50
rows), no guess is good enough, and most queries go to *walks*: small changes of natural rows near
the edge of the decision are measured, each from where others have led to, until one lies on the
edge (`_edge.py`).

Faithfulness
- No paper has this method; it is limi's own. LIMI learns where the decision changes, by a plane in
  latent space; this learns where it changes *with the protected value*, which is what is sought.
- Rows are drawn by probability to a power: the smallest with which they promise `keenness` times
  the findings of the surest rows. Always taking the surest finds some more, all of the kind that is
  easy to predict: the findings look less like the population.
- Learners: 20 trees of 124 leaves for flips and of 31 for scores (40 of 62 and of 31 while fewer
  than 10,000 rows are known), and no walks down them. With 80 trees of 31 leaves each and walks, a
  million queries on census (sex) took 107.5 s of one core for learning and found 154,951; now they
  take 9.9 s and find 159,287. With 100,000 queries (one seed) 1 to 4 % more are found on networks
  (census, bank, credit, meps) and 1 % fewer on the census forest; with 10,000 (two or three seeds)
  1.5 % more on credit (sex), the same on census (sex). Without the rule for few rows, 10,000
  queries found 4 % fewer on credit (sex), and 60,000 (one seed) 5 % more on forests (census, bank)
  and 0.3 % fewer on networks (meps, census and credit by age); ATN of representative findings, also
  without it and with 50,000: census 0.768 (0.758 before), bank 0.877 (0.880). Learning again only
  after 1.7 times the rows lost 3 % at 300,000 queries. The figures below are of the earlier
  learners.
- Findings per thousand queries, 10,000 queries, two seeds, on seven benchmark networks: without
  neighbours 107 to 195, with them 132 to 296; plain natural rows 30 to 76, LIMI 41 to 87. Of the
  findings 89 to 99 % are no odder than 95 % of real rows, as a set they are less like the
  population (ATN of representative ones on census, sex: 0.76 with, 0.79 without, 0.82 for LIMI).
- Keenness 0.75, 0.85 and 0.9 on census (sex): 133, 159, 165 (ATN of representative ones 0.78, 0.77,
  0.77); on meps (sex): 174, 196, 212 (0.81, 0.80, 0.78).
- Representative findings, drawn by calibrated weights and as many as these are worth
  (`limi.metrics.representative`), reach the ATN of real people who flip on all seven with the
  default settings. 60,000 queries, one seed: census (sex) 500 findings 0.835 (real ones 0.815),
  race 500 0.832 (0.818), age 536 0.910 (0.843), credit (sex) 600 0.948 (0.879), age 600 0.954
  (0.923), bank 500 0.909 (0.895), meps 759 0.916 (0.878). A quarter of the findings, as many as
  were drawn before, is too many on four: census (sex) 0.809, race 0.812, age 0.842, meps 0.811.
- `preset=natural` (keenness 0.6, neighbours 0.3) finds fewer, and representative ones about as like
  the population as real people whose decision flips: with 60,000 queries 109 on census (sex; ATN
  0.815, real ones 0.815; LIMI finds 47), 85 on bank (0.893, 0.895; 41), 126 on meps (0.858, 0.878;
  70). One seed.
- Rare flips: queries to the tenth finding on models whose protected effect is shrunk
  (`benchmarks/guided.py rare`, default settings, six seeds on census, three on credit), as mean and
  range, and what plain natural rows need by their rate. A census network (sex) at 0.011 %: 9,400
  (5,900 to 14,000), natural rows 191,000; at 0.071 %: 1,700 (1,000 to 2,400), 28,200. A credit
  network (age, seven values) at 0.015 %: 24,600 (22,400 to 28,700), 461,000; at 0.11 %: 3,800
  (3,200 to 4,300), 62,800. So a twentieth. With 100,000 queries no search of the literature finds
  ten flips at about 0.01 % of natural people (`python -m lab bench`).
- Tried for walks and worse, the same census network: changes that are measured for each anchor
  alone and added up, as in earlier versions, 34,000 to 42,000; beliefs about all sums of an
  anchor's changes by a Gaussian process 18,000 to 23,000; one way from each anchor, always on from
  its nearest row, 12,600 to 18,300. A network's changes do not add up: what one does from another
  row differs by as much as itself, so only near the edge is a step worth much, and all rows near it
  are kept. Gaps shrink on the way (their logarithms by half), so that the widest are not worth as
  much as they promise.
- A model that tells labels alone has no scores to measure: instead, one number of a natural row is
  changed until the label does, and the way is halved to a single step (`_lines.py`). Queries to the
  tenth finding of the same networks, labels only; rates are those of the search's own natural rows.
  At 0.075 % six seeds, 3,223 to 7,016, mean 4,632 (without lines three seeds, 7,418 to 12,674;
  plain natural rows 26,700); at 0.011 % two seeds, 18,778 and 20,552 (plain natural rows 185,000):
  a sixth and a ninth. Credit (age, seven values, 0.1 %): three seeds, 10,246 to 12,204 (without
  lines two of the three do not get there with 30,000). Halving between two differently decided
  latents was tried first: there the last step moves the log-odds by about 1, and steps of a single
  number by far less. Checking only the side of the edge that flipped before was tried as well:
  6,021 to 12,482 on the same six seeds.
- A rate of natural people from the search itself, by weights of rows drawn with known
  probabilities, was built and left out (docs/metrics.md has the table): its valid interval is 1.4
  to 6.7 times as wide as that of as many plain rows.
- Rows of a walk differ from a natural row in one to three cells: numbers by up to eight steps (on
  lines by as many as it takes), others as in a natural neighbour.
- Latents that are not independent (conditions of a CTGAN) are mixed all the same; a generator takes
  them as it takes LIMI's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from limi.errors import InvalidInput
from limi.methods._arrays import Arrays
from limi.methods._edge import Anchors, Walk
from limi.methods._guessing import Learners, Memory, Scale
from limi.methods._lines import Lines
from limi.search.check import Checked
from limi.search.session import Session
from limi.table.rows import distinct
from limi.table.schema import Schema
from limi.types import Latents, Mask, Rows, Scores

__all__ = ["Guided"]

_RARE = 0.02  # share of flips, below which walks may find them sooner
_WALKED = 4.0  # times the questions of a round, for walks that find more than rounds
_WALKED_IN_VAIN = 0.125  # ... and for others
_VERY_RARE = 0.005  # share of flips; where there may be more, guesses may find more than walks ...
_WALKED_FIRST = 0.5  # ... so that these ask no more than that until guesses were tried
_AT_ONCE = 24  # lines
_LABELS = 2  # different answers at most, of a model that tells labels alone
_NEAREST_OF = 128  # natural rows that are looked at for each that a line starts from
_MOST_VAIN = 8  # pools without a new key, after which the generator counts as exhausted
_POWERS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0, 50.0, 1e6)
_PREPARED_SHARE = 3  # of the time left, the part that choosing a round may take
_LEAST_ROUND = 0.1  # of the last round; a smaller one is not worth its learners
_ONE_NUMBER_OF = 32  # a neighbour has one new number of so many


@dataclass(frozen=True, kw_only=True)
class Guided:
    """Check natural rows that learned models of the target expect to flip."""

    first: int = 400  # rows of the first, unguided round; fewer where the budget is small
    growth: float = 1.6  # each round is that much larger
    largest: int = 20_000  # rows of a round at most
    pool: int = 12  # natural rows drawn for every row checked
    keenness: float = 0.85  # 0: rows of the pool as they come; 1: the surest, less natural ones
    neighbours: float = 0.8  # share of the pool that lies near an earlier finding
    explore_share: float = 0.1  # plain natural rows in a round
    learn_from: int = 40_000  # rows to learn from at most
    trees: int = 20  # of each model that learns from answers; twice as many while these are few
    leaves: int = 124  # of each tree of flips, half of them while answers are few

    needs: ClassVar[frozenset[str]] = frozenset({"generator"})
    revision: ClassVar[int] = 2
    population: ClassVar[str | None] = None
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "best": {},
        "natural": {"keenness": 0.6, "neighbours": 0.3},
    }

    def __post_init__(self) -> None:
        if self.first < 1 or self.largest < 1 or self.pool < 1 or self.growth < 1:
            raise InvalidInput("first, largest, pool and growth must be at least 1")
        if self.trees < 1 or self.leaves < 2 or self.learn_from < 1:
            raise InvalidInput("trees and learn_from must be at least 1, leaves at least 2")
        for name in ("explore_share", "neighbours", "keenness"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"{name} is {getattr(self, name)}; it must lie between 0 and 1")
        if self.neighbours == 1:
            raise InvalidInput("neighbours is 1; keep it below 1, so that some rows are fresh")

    def search(self, session: Session, rng: np.random.Generator) -> Iterator[Checked]:
        """An unguided round, then guided ones of growing size."""
        size = self._first(session)
        memory = Memory(session.schema, self.learn_from, session.decision)
        parents = _Parents(self.learn_from)
        scale = Scale()
        session.keep_scores = True
        asked = _fresh(session, parents, 0.0, size, rng)
        checked = session.check_kept(asked.rows).named("natural")
        yield checked
        prepared, learners, walks = 0.0, None, _Walks(session.schema)
        while len(checked):
            memory.add(checked)
            parents.add(asked[np.flatnonzero(checked.flips)])  # the budget may end inside a round
            walks.add(session, asked, checked)
            if walks.by_labels:
                learners = self._learn(session, memory, learners, rng)
            for near, found in walks.search(session, learners, rng):
                yield found
                memory.add(found)
                parents.add(near[np.flatnonzero(found.flips)])
            size = self._next(session, size, prepared)
            if not size:
                return
            start = session.watch.seconds
            pool = _fresh(session, parents, self.neighbours, size * self.pool, rng)
            if not len(pool.rows):
                return
            learners = self._learn(session, memory, learners, rng)
            guesses = np.column_stack([learners.guess(pool.rows), pool.bred])
            chosen = self._choose(scale.log_odds(guesses), pool.bred, size, rng)
            asked = pool[chosen]
            del pool  # the next one is as large
            prepared = session.watch.seconds - start
            checked = session.check_kept(asked.rows).named("guided")
            yield checked
            scale.learn(guesses[chosen[: len(checked)]], checked.flips)

    def _learn(
        self,
        session: Session,
        memory: Memory,
        learners: Learners | None,
        rng: np.random.Generator,
    ) -> Learners:
        """Learners of all that is remembered, or of nearly all."""
        if learners is not None and not learners.are_stale(memory):
            return learners
        return Learners.fit(session.schema, memory, self.trees, self.leaves, rng)

    def _first(self, session: Session) -> int:
        """A twentieth of what the budget pays for, within reason."""
        paid = min(session.rows_left, session.queries_left / len(session.schema.combinations))
        return self.first if not np.isfinite(paid) else int(np.clip(paid / 20, 40, self.first))

    def _next(self, session: Session, size: int, prepared: float) -> int:
        """Rows of the next round: more than of the last, but no more than there is time to choose.

        `prepared` is how long the last round took to be chosen.
        """
        grown = min(int(size * self.growth) + 1, self.largest)
        if not prepared:
            return grown
        share = session.watch.left / (_PREPARED_SHARE * prepared)
        if share >= self.growth:
            return grown
        session.watch.ran_out = share < _LEAST_ROUND
        return 0 if session.watch.ran_out else max(1, int(size * share))

    def _choose(
        self, log_odds: NDArray[np.float64], bred: Mask, size: int, rng: np.random.Generator
    ) -> NDArray[np.intp]:
        """Rows drawn by their chance to flip, and then some plain ones as they came."""
        log_chance = -np.logaddexp(0.0, -log_odds)
        # Gumbel's trick: the largest of log-weight plus noise are a weighted draw without repeats.
        noise = -np.log(-np.log(rng.uniform(np.finfo(float).tiny, 1.0, len(log_odds))))
        n_guided = round(size * (1 - self.explore_share))
        power = _power(log_chance, noise, n_guided, self.keenness)
        best_first = np.argsort(-(power * log_chance + noise), kind="stable")
        others = np.sort(best_first[n_guided:])
        others = others[~bred[others]][: size - n_guided]
        return np.concatenate([best_first[:n_guided], others])


def _power(
    log_chance: NDArray[np.float64], noise: NDArray[np.float64], n: int, keenness: float
) -> float:
    """The smallest power of the chances with which n rows promise enough of the most findings."""
    if not 0 < n < len(log_chance):
        return 0.0
    chance = np.exp(log_chance)
    enough = keenness * np.partition(chance, -n)[-n:].sum()
    for power in _POWERS:
        chosen = np.argpartition(-(power * log_chance + noise), n)[:n]
        if chance[chosen].sum() >= enough:
            return power
    return _POWERS[-1]


@dataclass(frozen=True)
class _Pool(Arrays):
    """Rows with the latents they came from, and which of them are neighbours of findings."""

    latents: Latents
    rows: Rows
    bred: Mask


class _Parents:
    """Latents of findings that are not neighbours themselves; the oldest are forgotten first."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._latents: Latents | None = None

    def add(self, findings: _Pool) -> None:
        """Remember where these findings lie."""
        new = findings.latents[~findings.bred]
        known = new if self._latents is None else np.concatenate([self._latents, new])
        self._latents = known[-self._most :]

    def breed(
        self, latents: Latents, which: Mask, rng: np.random.Generator
    ) -> tuple[Latents, Mask]:
        """These latents, some of them now neighbours of findings, and which of them are."""
        if self._latents is None or not len(self._latents):
            return latents, np.zeros(len(latents), dtype=bool)
        lines = np.flatnonzero(which)
        near = self._latents[rng.integers(len(self._latents), size=len(lines))]
        width = latents.shape[1]
        n_new = max(1, width // _ONE_NUMBER_OF)
        new = rng.integers(width, size=(len(lines), n_new))
        np.put_along_axis(near, new, np.take_along_axis(latents[lines], new, axis=1), axis=1)
        latents = latents.copy()
        latents[lines] = near
        return latents, which


class _Walks:
    """Walks to the edge of the decision, while flips are rare and walks find them sooner."""

    def __init__(self, schema: Schema) -> None:
        self._anchors: Anchors | None = None  # of the last round
        self._walk = Walk(schema)
        self._lines = Lines(schema)
        self._answers: Scores = np.zeros(0)  # different ones that the model gave, three at most
        self._n_rounds = self._n_rows = self._n_flips = 0
        self._found = self._asked = 0  # flips and questions of walks
        self._left = 0.0  # questions that they may ask now

    @property
    def by_labels(self) -> bool:
        """Do walks go on now by labels alone?"""
        return self._left > 0 and len(self._answers) <= _LABELS

    def add(self, session: Session, asked: _Pool, checked: Checked) -> None:
        """See what came of a round; its plain rows may become anchors."""
        found = int(checked.flips.sum())
        self._n_rounds += 1
        self._n_rows += len(checked)
        self._n_flips += found
        self._left = 0.0
        if session.decision.kind != "favorable" or self._n_flips >= _RARE * self._n_rows:
            return
        answers = checked.scores[~np.isnan(checked.scores)]
        self._answers = np.unique(np.append(self._answers, answers))[: _LABELS + 1]
        plain = np.flatnonzero(~asked.bred[: len(checked)])
        self._anchors = Anchors.of(asked.latents[plain], checked[plain], session.decision)
        if self._n_rows >= 1 / _RARE:
            sooner = (self._found + 1) / (self._asked + 1) >= found / max(1, checked.queries)
            share = _WALKED if sooner else _WALKED_IN_VAIN
            if self._n_rounds == 1 and self._n_flips + 1 >= _VERY_RARE * self._n_rows:
                share = _WALKED_FIRST
            self._left = checked.queries * share

    def search(
        self, session: Session, learners: Learners | None, rng: np.random.Generator
    ) -> Iterator[tuple[_Pool, Checked]]:
        """Rows on the way to the edge, and how they are decided."""
        while self._left > 0:
            before = session.watch.questions
            for latents, checked in self._go(session, learners, rng):
                self._found += int(checked.flips.sum())
                yield _Pool(latents, checked.rows, np.zeros(len(checked), dtype=bool)), checked
            spent = session.watch.questions - before
            self._asked += spent
            self._left = self._left - spent if spent else 0.0

    def _go(
        self, session: Session, learners: Learners | None, rng: np.random.Generator
    ) -> Iterator[tuple[Latents, Checked]]:
        """Go on by scores, or by labels where the model tells no more."""
        if self.by_labels and learners is not None and self._lines.exist:
            n = int(self._left / self._lines.questions_each) or 1
            latents, rows = _near_edge(session, learners, min(n, _AT_ONCE), rng)
            return self._lines.search(session, latents, rows, rng)
        if self._anchors is not None:
            self._walk.add(session, self._anchors, rng)
            self._anchors = None
        return self._walk.search(session, self._left)


def _near_edge(
    session: Session, learners: Learners, n: int, rng: np.random.Generator
) -> tuple[Latents, Rows]:
    """n natural rows of many, those that the learned scores put nearest to the edge."""
    assert session.generator is not None
    latents = session.generator.sample_latents(n * _NEAREST_OF, rng)
    rows = session.generator.decode(latents)
    promise = np.round(learners.guess(rows)[:, 0], 6)
    best = np.argsort(-promise, kind="stable")[:n]
    return latents[best], rows[best]


def _fresh(
    session: Session, parents: _Parents, share: float, n: int, rng: np.random.Generator
) -> _Pool:
    """Up to n natural rows whose keys were never asked, a share of them neighbours of findings;
    fewer where the generator has no more."""
    assert session.generator is not None
    pool: _Pool | None = None
    vain = 0
    while (pool is None or len(pool.rows) < n) and vain < _MOST_VAIN:
        have = 0 if pool is None else len(pool.rows)
        size = max(n - have, n // 4)
        latents, bred = parents.breed(
            session.generator.sample_latents(size, rng), rng.random(size) < share, rng
        )
        new = _Pool(latents, session.generator.decode(latents), bred)
        new = new[session.unseen(new.rows)]
        if pool is not None and len(new.rows):
            first = distinct(session.schema, np.concatenate([pool.rows, new.rows])).first
            new = new[np.sort(first[first >= have]) - have]
        pool = new if pool is None else pool.joined(new)
        vain = vain + 1 if len(pool.rows) <= have else 0
    assert pool is not None
    return pool[:n]
