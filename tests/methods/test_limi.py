"""LIMI against the paper's literal loop and the dossier's oracles."""

import dataclasses
from dataclasses import replace

import numpy as np
import pytest

from limi import methods
from limi.decisions import favors
from limi.errors import InvalidInput, MissingCapability
from limi.methods._latent import Confident, LatentStream, oversample, probe
from limi.methods.limi import LIMI
from limi.methods.natural import Natural
from limi.search import boundary
from limi.search.budget import Budget, Stop
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.session import Session
from limi.table.rows import KeySet, keys
from tests.naive import limi as naive
from tests.naive.check import key
from tests.toy import FLIPPING, MODEL, SCHEMA, Linear, Rounding, schema_of, task

COARSE = schema_of((0, 6), (0, 6), (0, 3), (0, 1), protected=["x3"])
FINE = schema_of((0, 60), (0, 60), (0, 30), (1, 4), (0, 1), protected=["x3", "x4"])
# Binary fractions, so that a margin is the same number alone and in any batch.
COARSE_MODEL = Linear((0.5, -0.5, 0.25, 1.0), -0.375)
FINE_MODEL = Linear((0.125, -0.0625, 0.0625, 0.25, 1.0), -1.53125)


def with_generator(schema, model, **more):
    return task(schema, model, generator=Rounding(schema), **more)


def probed(here, plane, latents, step, chunk):
    """Keys found and seen by the batched probe, chunk by chunk."""
    seen, found = KeySet(), []
    for start in range(0, len(latents), chunk):
        on_plane = plane.project(latents[start : start + chunk])
        decoders = [
            lambda mask, on_plane=on_plane, o=o: here.generator.decode(
                plane.shift(on_plane[mask], o)
            )
            for o in (0.0, step, -step)
        ]
        checked, paid = probe(here.schema, len(on_plane), decoders, seen, Session(here).check)
        assert paid
        found += [key(here.schema, row) for row in checked.rows[checked.flips]]
    return found, seen


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("step", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("schema", "model"), [(COARSE, COARSE_MODEL), (FINE, FINE_MODEL)])
def test_batched_probing_is_the_literal_loop(seed, step, schema, model):
    here = with_generator(schema, model)
    rng = np.random.default_rng(seed)
    latents = here.generator.sample_latents(120, rng)
    plane = boundary.random(latents, rng, offset=0.2)
    expected, expected_seen = naive.probe(
        model, schema, here.generator.decode, plane.normal, plane.offset, latents, step
    )
    for chunk in (120, 31):
        found, seen = probed(with_generator(schema, model), plane, latents, step, chunk)
        assert found == expected
        assert len(seen) == len(expected_seen)
        back = np.array([list(k) for k in expected_seen])
        rows = np.zeros((len(back), len(schema)))
        rows[:, schema.free_index] = back
        assert seen.contains(keys(schema, rows)).all()


@dataclasses.dataclass(frozen=True)
class Between:
    """Unlike all others where the last value lies between those that are tried, or in the middle
    of them; every third row, so that keys of one latent differ."""

    low: int
    high: int
    odd: float  # the score there

    def score(self, rows):
        there = (rows[:, -1] > self.low) & (rows[:, -1] < self.high)
        side = np.where(rows[:, -1] >= self.high, 0.8, 0.2 if self.odd == 0.5 else 0.8)
        here = np.where(there, self.odd, side)
        return np.where(rows[:, 0] % 3 == 0, 0.9, here)

    def __call__(self, rows):
        return self.score(rows)


# Somebody of 35 is decided about like nobody of 20, 40 or 60; and of three values the middle one
# lies on the edge, so that it differs from neither of the two others.
STRAY = schema_of((0, 400), (20, 60), protected=["x1=20-60:20"])
EDGE = schema_of((0, 400), (1, 3), protected=["x1"])
OWN = [(STRAY, Between(30, 38, 0.1)), (EDGE, Between(1, 3, 0.5))]


@pytest.mark.parametrize("step", [0.0, 0.1, 1.0])
@pytest.mark.parametrize(("schema", "model"), OWN, ids=["stray", "edge"])
def test_rows_of_one_key_that_differ_by_their_own_value_are_those_of_the_literal_loop(
    step, schema, model
):
    rng = np.random.default_rng(5)
    latents = Rounding(schema).sample_latents(1_000, rng)
    plane = boundary.random(latents, rng, offset=0.2)
    expected, _ = naive.probe(
        model, schema, Rounding(schema).decode, plane.normal, plane.offset, latents, step
    )
    assert expected
    for chunk in (1_000, 331, 10, 1):
        found, _ = probed(with_generator(schema, model), plane, latents, step, chunk)
        assert found == expected


@pytest.mark.parametrize(("schema", "model"), OWN, ids=["stray", "edge"])
def test_such_rows_are_the_same_at_any_cap(schema, model):
    method = LIMI(n_latents=400, boundary="random", step=0.1)
    rng = np.random.default_rng(np.random.SeedSequence(4, spawn_key=(0,)))
    latents = LatentStream(Rounding(schema), 400, int(rng.integers(2**62)))
    plane = boundary.random(next(latents.chunks(1)), rng)
    every = np.concatenate(list(latents.chunks()))
    for cap in (1, 5, 58, 100, 191):
        expected, seen = naive.probe(
            model, schema, Rounding(schema).decode, plane.normal, plane.offset, every, 0.1, cap=cap
        )
        ran = run(method, with_generator(schema, model), Budget(max_rows=cap), 4)
        assert [key(schema, row) for row in ran.findings.all().rows] == expected
        assert ran.findings.rows_checked == len(seen)


CAPS = [1, 2, 3, 4, 5, 17, 58, 100, 191, 192, 193, 400, 777]


@pytest.mark.parametrize("step", [0.1, 0.3, 1.0])
@pytest.mark.parametrize(("schema", "model"), [(COARSE, COARSE_MODEL), (FINE, FINE_MODEL)])
def test_a_search_is_the_literal_loop_at_any_cap(step, schema, model):
    """On the coarse problem most keys repeat, and the larger caps are never reached."""
    method = LIMI(n_latents=1_500, boundary="random", step=step)
    rng = np.random.default_rng(np.random.SeedSequence(4, spawn_key=(0,)))
    latents = LatentStream(Rounding(schema), 1_500, int(rng.integers(2**62)))
    plane = boundary.random(next(latents.chunks(1)), rng)
    every = np.concatenate(list(latents.chunks()))
    for cap in CAPS:
        expected, seen = naive.probe(
            model, schema, Rounding(schema).decode, plane.normal, plane.offset, every, step, cap=cap
        )
        ran = run(method, with_generator(schema, model), Budget(max_rows=cap), 4)
        assert [key(schema, row) for row in ran.findings.all().rows] == expected
        assert ran.findings.rows_checked == len(seen)
        assert ran.stop == (Stop.ROWS if len(seen) == cap else Stop.EXHAUSTED)


def test_steps_of_other_sizes_find_other_rows_however_small_the_budget():
    found = [
        run(
            LIMI(n_latents=20_000, boundary="random", step=step),
            with_generator(FINE, FINE_MODEL),
            Budget(max_rows=500),
            0,
        ).findings.all()
        for step in (0.1, 0.5)
    ]
    assert found[0].rows.tolist() != found[1].rows.tolist()


def test_a_cap_that_a_small_domain_never_reaches_costs_no_time():
    """Thousands of latents that bring nothing new are looked at together, not one by one."""
    calls = []

    @dataclasses.dataclass(frozen=True)
    class Counting(Rounding):
        def decode(self, latents):
            calls.append(len(latents))
            return super().decode(latents)

    here = task(COARSE, COARSE_MODEL, generator=Counting(COARSE))
    ran = run(LIMI(n_latents=30_000, boundary="random"), here, Budget(max_rows=197), 0)
    assert 190 < ran.findings.rows_checked <= 7 * 7 * 4
    assert ran.stop == Stop.EXHAUSTED
    assert len(calls) < 1_000


@pytest.mark.parametrize("max_findings", [1, 7, 40])
def test_few_wanted_findings_cost_few_questions(max_findings):
    here = with_generator(FINE, FINE_MODEL)
    whole = run(LIMI(n_latents=20_000, boundary="random"), here, Budget(), 0)
    ran = run(
        LIMI(n_latents=20_000, boundary="random"),
        with_generator(FINE, FINE_MODEL),
        Budget(max_findings=max_findings),
        0,
    )
    first = whole.findings.all()[:max_findings]
    np.testing.assert_array_equal(ran.findings.all().rows, first.rows)
    assert ran.queries < whole.queries / 10


@pytest.mark.parametrize(
    ("budget", "setting", "expected"),
    [
        (Budget(), 5_000, 5_000),
        (Budget(max_rows=20_000), 5_000, 2_000),
        (Budget(max_rows=500), 5_000, 200),
        (Budget(max_rows=20_000), None, 8_000),  # all of them, as the paper has it
        (Budget(max_queries=12_000), 5_000, 1_200),
        (Budget(max_queries=12_000), None, 1_200),
    ],
)
def test_labels_are_at_most_a_tenth_of_what_may_be_checked(budget, setting, expected):
    here = with_generator(FINE, FINE_MODEL)
    ran = run(LIMI(n_latents=8_000, n_labelled=setting), here, budget, 0)
    assert ran.session.used == {"n_labelled": expected}
    assert ran.session.watch.spent["labels"].questions == expected


def test_probing_wastes_few_questions():
    here = with_generator(FINE, FINE_MODEL)
    latents = here.generator.sample_latents(2_000, np.random.default_rng(0))
    plane = boundary.random(latents, np.random.default_rng(1))
    asked = []
    score = here.score
    here = replace(here, score=lambda rows: asked.append(len(rows)) or score(rows))
    _, seen = probed(here, plane, latents, 0.3, 2_000)
    per_key = len(FINE.combinations)
    assert len(seen) * per_key <= sum(asked) <= 1.02 * len(seen) * per_key


def test_the_break_rule_and_seen_keys():
    """Three latents whose candidates all flip give three rows, from candidate 0 alone."""
    schema = schema_of((0, 9), (0, 9), (0, 1), protected=["x2"])
    follows = Linear((0.0, 0.0, 2.0), -1.0)
    here = task(schema, follows)
    rows = [np.array([[i, c, 0.0] for i in range(3)]) for c in range(3)]
    decoders = [lambda mask, c=c: rows[c][mask] for c in range(3)]
    seen = KeySet()
    checked, _ = probe(schema, 3, decoders, seen, Session(here).check)
    assert checked.rows[:, :2].tolist() == [[0, 0], [1, 0], [2, 0]]
    assert len(seen) == 3
    # Again: z0 was seen before, so the next candidate of each is examined.
    checked, _ = probe(schema, 3, decoders, seen, Session(here).check)
    assert checked.rows[:, :2].tolist() == [[0, 1], [1, 1], [2, 1]]


def test_all_flipping_keys_of_a_small_domain_are_found():
    ran = run(LIMI(n_latents=20_000), with_generator(SCHEMA, MODEL), Budget(), 0)
    found = {tuple(row[:2].astype(int)) for row in ran.findings.all().rows}
    reach = {
        tuple(row[:2].astype(int))
        for row in Rounding(SCHEMA).decode(np.random.default_rng(0).normal(size=(200_000, 3)))
    }
    assert found <= FLIPPING
    # The projection reaches those near the plane; all of them are near it here.
    assert found == FLIPPING & reach


def test_a_model_that_ignores_the_protected_column_gives_nothing():
    ignores = Linear((0.5, -0.5, 0.3, 0.0), -0.45)
    ran = run(LIMI(n_latents=5_000), with_generator(COARSE, ignores), Budget(), 0)
    assert len(ran.findings) == 0
    assert ran.findings.rows_checked > 50


def test_the_boundary_of_a_linear_model_is_its_own():
    schema = schema_of((0, 1000), (0, 1000), (0, 1), protected=["x2"])
    model = Linear((0.03, 0.04, 1e-3), -35.0005)
    here = with_generator(schema, model)
    method = LIMI(n_latents=20_000)
    session = Session(here)
    latents = LatentStream(here.generator, 20_000, 3)
    stream = method._plane(session, latents, np.random.default_rng(0))
    try:
        while True:
            next(stream)
    except StopIteration as done:
        plane = done.value
    assert plane.normal @ np.array([0.6, 0.8, 0.0]) > np.cos(np.radians(3))
    assert session.facts["boundary_auc_entire"] > 0.99
    on_plane = plane.project(next(latents.chunks(2_000)))
    assert np.abs(plane.distance(on_plane)).max() < 1e-6
    scores = model.score(here.generator.decode(on_plane))
    inside = np.all((here.generator.decode(on_plane)[:, :2] % 1000) > 0, axis=1)
    before = model.score(here.generator.decode(next(latents.chunks(2_000))))
    assert np.abs(scores[inside] - 0.5).mean() < np.abs(before - 0.5).mean() / 3


def test_the_calibrated_plane_is_fitted_to_all_labelled_latents():
    schema = schema_of((0, 1000), (0, 1000), (0, 1), protected=["x2"])
    model = Linear((0.004, 0.004, 1e-3), -6.4005)
    here = with_generator(schema, model)

    def plane(calibration):
        method = LIMI(n_latents=5_000, per_class=2_000, threshold=0.6, calibration=calibration)
        return method.fit_plane(Session(here), np.random.default_rng(7))

    seed = int(np.random.default_rng(7).integers(2**62))
    latents = next(LatentStream(here.generator, 5_000, seed).chunks())
    labelled = [(latents, favors(model.score(here.generator.decode(latents))))]
    expected = boundary.calibrate(lambda: iter(labelled))
    assert np.allclose(plane(1.0).normal, expected.normal, atol=1e-6)
    assert plane(1.0).offset == pytest.approx(expected.offset, abs=1e-6)
    middle = boundary.between(plane(0.0), expected, 0.5)
    assert plane(0.5).offset == pytest.approx(middle.offset, abs=1e-6)


def test_selection_keeps_a_bounded_choice():
    confidence = np.array([0.71, 0.99, 0.8, 0.9])
    best = Confident(2)
    for c in confidence:
        best.add(np.array([[c]]), -np.array([c]))
    assert best.latents().ravel().tolist() == [0.99, 0.9]


def test_a_random_choice_depends_on_no_chunk():
    stream = LatentStream(Rounding(FINE), 1000, 3)
    kept = []
    for size in (10, 137):
        some = Confident(50)
        for start in range(0, 1000, size):
            n = min(size, 1000 - start)
            some.add(np.arange(start, start + n)[:, None], stream.ranks(start, n))
        kept.append(some.latents().ravel())
    np.testing.assert_array_equal(*kept)
    assert len(kept[0]) == 50
    assert 300 < kept[0].mean() < 700


def test_over_sampling_in_turn_and_at_random():
    three = np.array([[0.0], [1.0], [2.0]])
    assert oversample(three, 7, None).ravel().tolist() == [0, 1, 2, 0, 1, 2, 0]
    drawn = oversample(three, 50, np.random.default_rng(0))
    assert len(drawn) == 50
    assert set(drawn.ravel()) == {0.0, 1.0, 2.0}
    assert len(oversample(three, 2, None)) == 3


def test_only_confident_latents_are_fitted_on():
    latents = np.arange(5.0)[:, None]
    score = np.array([0.7, 0.71, 0.3, 0.29, 0.5])
    sides = Confident(10), Confident(10)
    LIMI()._sort(latents, score, np.arange(5), sides)
    assert [side.latents().ravel().tolist() for side in sides] == [[3.0], [1.0]]
    # Labels alone: every latent counts on its side.
    sides = Confident(10), Confident(10)
    LIMI()._sort(latents, np.array([0.0, 1.0, 1.0, 0.0, 0.0]), np.arange(5), sides)
    assert [len(side) for side in sides] == [3, 2]


def test_one_decision_alone_falls_back_to_natural_rows_and_says_so():
    always = Linear((0.0, 0.0, 0.0, 0.0), 5.0)
    here = with_generator(COARSE, always)
    ran = run(LIMI(n_latents=2_000), here, Budget(), 0)
    assert ran.findings.rows_checked > 50
    assert any("no boundary could be fitted" in note for note in ran.session.notes)


def test_latents_are_drawn_again_the_same():
    stream = LatentStream(Rounding(FINE), 70_000, 5)
    first, again = list(stream.chunks()), list(stream.chunks())
    assert [len(c) for c in first] == [65_536, 4_464]
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.array_equal(first[0][:10], first[1][:10])


def test_a_query_budget_covers_boundary_and_probes():
    here = with_generator(FINE, FINE_MODEL)
    ran = run(LIMI(), here, Budget(max_queries=4_000), 0)
    assert ran.stop == Stop.QUERIES
    assert 3_900 < ran.queries <= 4_000
    assert len(ran.findings) > 20


def test_presets_and_settings():
    assert methods.parse("limi") == LIMI()
    assert methods.parse("limi", ["preset=paper"]) == LIMI(n_labelled=None)
    mixed = methods.parse("limi", ["step=0.1", "preset=paper"])
    assert mixed == LIMI(n_labelled=None, step=0.1)
    assert methods.parse("limi", ["preset=calibrated"]) == LIMI(calibration=1.0)
    with pytest.raises(InvalidInput, match="calibration is 2"):
        LIMI(calibration=2.0)
    with pytest.raises(InvalidInput, match="no preset 'papers'"):
        methods.parse("limi", ["preset=papers"])
    with pytest.raises(InvalidInput, match="threshold"):
        LIMI(threshold=0.2)


def test_random_boundary_is_the_paper_s_control():
    method = LIMI(boundary="random", n_latents=3_000, step=0.0)
    ran = run(method, with_generator(FINE, FINE_MODEL), Budget(), 0)
    found = ran.findings.all()
    assert check_rows(FINE_MODEL, FINE, found.rows).flips.all()


@pytest.mark.parametrize("method", [LIMI(), Natural()])
def test_a_generator_is_needed(method):
    with pytest.raises(MissingCapability, match=r"method '(limi|natural)' needs a generator; give"):
        run(method, task(), Budget(), 0)


def test_natural_asks_no_key_twice_and_ends_when_all_are_known():
    here = with_generator(COARSE, COARSE_MODEL)
    ran = run(Natural(), here, Budget(), 0)
    assert ran.stop == Stop.EXHAUSTED
    assert ran.queries == 2 * ran.findings.rows_checked
    assert ran.findings.rows_checked <= 7 * 7 * 4
