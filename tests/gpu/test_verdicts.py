"""The search on a device against arrays and the literal loop, on torch's CPU device."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from limi.errors import BadModel
from limi.generators._counter_rng import normals
from limi.gpu import place as device
from limi.gpu.verdicts import OnDevice, Packing, Seen
from limi.methods._tensors import probe
from limi.methods.limi import LIMI
from limi.models._scores import Outputs
from limi.search import boundary
from limi.search.budget import Budget, Stop
from limi.search.check import check_rows
from limi.search.engine import run
from limi.search.session import Session
from limi.search.task import Task
from limi.table.frames import Codec
from limi.table.rows import group, keys, uniform
from limi.table.schema import Column, Schema
from limi.table.sheets import plain_frame
from tests.naive import limi as naive
from tests.naive.check import key
from tests.networks import balanced, linear, target_of
from tests.toy import Rounding, integers, schema_of

CPU = torch.device("cpu")
COARSE = schema_of((0, 6), (0, 6), (0, 3), (0, 1), protected=["x3"])
FINE = schema_of((0, 60), (0, 60), (0, 30), (1, 4), (0, 1), protected=["x3", "x4"])
# Two words a key: 2^30 times 2^30 values and more.
WIDE = schema_of((0, 2**30), (-(2**29), 2**29), (0, 7), (0, 1), protected=["x3"])
ODD = Schema(
    (
        integers("whole", 18, 60, missing=True),
        Column(name="real", kind="numerical", low=-3.0, high=3.0, missing=True),
        Column(name="price", kind="numerical", low=0.5, high=2.0, step=0.1),
        Column(name="tens", kind="ordered", levels=(10, 20, 30), missing=True),
        Column(name="vet", kind="boolean", levels=(False, True)),
        Column(name="group", kind="categorical", levels=(3, 1, 2)),
    )
).protect(["group"])
# Binary fractions, so that a margin is the same number alone and in any batch.
COARSE_MODEL = linear((0.5, -0.5, 0.25, 1.0), -0.375)
FINE_MODEL = linear((0.125, -0.0625, 0.0625, 0.25, 1.0), -1.53125)
WIDE_MODEL = linear((2.0**-20, -(2.0**-20), 0.25, 256.0), -640.5)
# Most rows hold values of x3 between those that are tried.
STRAY = schema_of((0, 60), (0, 60), (0, 30), (0, 20), (0, 1), protected=["x3=0-20:5", "x4"])
STRAY_MODEL = linear((0.125, -0.0625, 0.0625, 0.0625, 1.0), -1.53125)


@dataclass(frozen=True)
class Tensors(Rounding):
    """The generator of the toy problems that works in tensors as well."""

    device = CPU

    def latents_at(self, seed, numbers):
        return normals(seed, numbers, torch.empty(len(numbers), self.latent_dim)).double()

    def decode_tensor(self, latents):
        return torch.from_numpy(self.decode(latents.numpy()))


def both(schema, module, **more):
    """A task in arrays, and the same with target and generator as tensors."""
    target = target_of(schema, module)
    generator = Tensors(schema)
    plain = Task(schema, target.score, np.zeros((1, len(schema))), generator=generator, **more)
    here = device.join_on_device(target, generator)
    return plain, replace(plain, on_device=here)


def told(rows):
    """A number a row, equal for equal rows, in the order of their first appearance."""
    _, of = np.unique(rows, axis=0, return_inverse=True)
    _, first = np.unique(of, return_index=True)
    rank = np.empty(len(first), dtype=int)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[of.ravel()]


# -- keys -------------------------------------------------------------------------------


@st.composite
def schemas(draw):
    columns = [integers("p", 0, 1)]
    for place in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["whole", "real", "decimal", "levels", "one", "huge"]))
        missing = draw(st.booleans())
        low = draw(st.integers(-5, 5))
        name = f"c{place}"
        if kind == "levels":
            n = draw(st.integers(1, 300))
            made = Column(name=name, kind="categorical", levels=tuple(range(n)), missing=missing)
        else:
            step = {"real": 0.0, "decimal": 0.1}.get(kind, 1.0)
            size = {"one": 0, "huge": 2**40, "decimal": 3}.get(kind, draw(st.integers(1, 9)))
            made = Column(
                name=name, kind="numerical", low=low, high=low + size, step=step, missing=missing
            )
        columns.append(made)
    return Schema(tuple(columns)).protect(["p"])


@settings(max_examples=60, deadline=None)
@given(schemas(), st.integers(0, 2**32))
def test_words_tell_rows_apart_as_keys_do(schema, seed):
    rng = np.random.default_rng(seed)
    some = uniform(schema, 6, rng)
    # Rows that share most cells, so that keys meet and differ in every column.
    rows = some[rng.integers(0, 6, (60, len(schema))), np.arange(len(schema))]
    gaps = (rng.random(rows.shape) < 0.2) & schema.may_miss
    rows[gaps] = np.nan
    rows[rng.random(rows.shape) < 0.1] *= -0.0 if schema.low.max() <= 0 else 1.0
    rows = np.where(gaps, np.nan, np.clip(rows, schema.low, schema.high))
    words = Packing.of(schema, CPU).words(torch.tensor(rows))
    expected = group(keys(schema, rows))[1]
    np.testing.assert_array_equal(told(words.numpy()), expected)
    np.testing.assert_array_equal(told(keys(schema, rows)), expected)


def test_zero_has_no_sign_and_gaps_are_one_value():
    schema = Schema(
        (integers("p", 0, 1), Column(name="r", kind="numerical", low=-1, high=1, missing=True))
    ).protect(["p"])
    other = np.array([0x7FF8000000000001], dtype=np.uint64).view(np.float64)[0]
    rows = np.array([[0, 0.0], [1, -0.0], [0, np.nan], [1, other], [0, 0.5]])
    words = Packing.of(schema, CPU).words(torch.tensor(rows))
    assert told(words.numpy()).tolist() == [0, 0, 1, 1, 2]


def test_few_bits_take_one_word_and_many_take_more():
    assert Packing.of(FINE, CPU).named_exactly
    assert Packing.of(WIDE, CPU).weights.shape[1] == 2
    assert not Packing.of(ODD, CPU).named_exactly


# -- verdicts ---------------------------------------------------------------------------


@pytest.mark.kernels
@pytest.mark.parametrize("rule", ["widest", "first"])
@pytest.mark.parametrize(
    "schema",
    [
        COARSE,
        FINE,
        schema_of((0, 9), (0, 9), protected=["x1=2,5,7"]),
        schema_of((0, 9), (0, 9), (0, 3), protected=["x1=2,5,7", "x2"]),
        schema_of((0, 9), (0, 9), (0, 3), (0, 1), protected=["x1=2,5", "x2=0,1,3", "x3"]),
    ],
    ids=["two", "combinations", "some values", "mixtures", "mixtures of two"],
)
def test_verdicts_are_those_of_the_oracle(schema, rule):
    rng = np.random.default_rng(3)
    module = balanced(rng, schema, 8, 4)
    target = target_of(schema, module)
    here = device.join_on_device(target, Tensors(schema))
    rows = uniform(schema, 300, rng)
    rows = rows[group(keys(schema, rows))[0]]
    expected = check_rows(target.score, schema, rows, partner=rule)
    asked = []
    found = here.check(torch.tensor(rows), asked.append, 50, rule)
    assert found.queries == sum(asked) == expected.queries
    assert max(asked) <= 50
    np.testing.assert_array_equal(found.flips.numpy(), expected.flips)
    np.testing.assert_allclose(found.score.numpy(), expected.score, rtol=1e-9)
    np.testing.assert_allclose(found.partner_score.numpy(), expected.partner_score, rtol=1e-9)
    partners = rows.copy()
    partners[:, schema.protected_index] = found.partner.numpy()
    np.testing.assert_array_equal(partners, expected.partner)
    np.testing.assert_array_equal(found.bits.numpy()[expected.flips], expected.bits[expected.flips])
    if len(expected.causes):
        assert expected.causes[expected.flips].all()
        np.testing.assert_array_equal(found.causes.numpy(), expected.causes)


def test_a_module_receives_what_it_receives_from_arrays():
    rng = np.random.default_rng(0)
    module = balanced(rng, ODD, 6)
    rows = uniform(ODD, 200, rng)
    target = target_of(ODD, module, codec=Codec.learn(plain_frame(ODD, rows), ODD))
    here = device.join_on_device(target, Tensors(ODD))
    given_to_model = target.present(rows)
    np.testing.assert_array_equal(here.present(torch.tensor(rows)).numpy(), given_to_model)
    assert (given_to_model[:, 3] > 9).any()  # levels, not positions


@pytest.mark.parametrize("favorable", [0, 1])
@pytest.mark.parametrize(
    ("kind", "width"),
    [("logits", 1), ("probability", 1), ("logits", 2), ("probability", 2), (None, 2)],
)
def test_outputs_are_read_alike(favorable, kind, width):
    rng = np.random.default_rng(1)
    raw = rng.normal(size=(400, width))
    raw[:5] = 0.0
    if kind == "probability" or kind is None:
        raw = 1 / (1 + np.exp(-raw))
        raw = raw if width == 1 else np.column_stack([raw[:, 0], 1 - raw[:, 0]])
    if kind is None:
        raw[::3] = rng.normal(size=(len(raw[::3]), 2)) * 9
    outputs = Outputs(favorable, kind)
    mine = device._read(torch.tensor(raw), outputs)
    expected = outputs.read(raw, len(raw))
    np.testing.assert_allclose(mine.numpy(), expected, rtol=1e-12)
    np.testing.assert_array_equal(mine.numpy() > 0.5, expected > 0.5)
    # Gradients follow the log-odds of the same scores.
    margins = outputs.margins(torch.tensor(raw)).numpy()
    np.testing.assert_allclose(1 / (1 + np.exp(-margins)), expected, rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_scores_that_are_no_numbers_are_refused(bad):
    module = linear((0.5, -0.5, 0.25, 1.0), bad)
    here = device.join_on_device(target_of(COARSE, module), Tensors(COARSE))
    rows = torch.zeros(3, 4, dtype=torch.float64)
    with pytest.raises(BadModel, match="cannot be used"):
        here.ask(rows, lambda n: None, 10)
    with pytest.raises(BadModel, match="cannot be used"):
        here.check(rows, lambda n: None, 10)


# -- probing ----------------------------------------------------------------------------


def probed(here, plane, latents, step, chunk):
    seen, found = Seen(here.packing), []
    n_checked = 0
    for start in range(0, len(latents), chunk):
        on_plane = plane.project(latents[start : start + chunk])
        moved = torch.cat([plane.shift(on_plane, offset) for offset in (0.0, step, -step)])
        block = probe(
            here.generator.decode_tensor(moved),
            3,
            lambda rows: (rows, here.check(rows, lambda n: None, 1000)),
            seen,
        )
        assert block.paid
        n_checked += block.n_checked
        found += [key(here.schema, row) for row in block.rows.numpy()]
    return found, seen, n_checked


class Between(torch.nn.Module):
    """The model of `tests/methods/test_limi` where rows of one key differ by their own value."""

    def __init__(self, low, high, odd):
        super().__init__()
        self.low, self.high, self.odd = low, high, odd
        self.one = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))  # says where it is

    def forward(self, rows):
        last = rows[:, -1]
        side = torch.where(last >= self.high, 2.0, 2.0 if self.odd else -2.0)
        here = torch.where((last > self.low) & (last < self.high), self.odd, side)
        margin = torch.where(rows[:, 0] % 3 == 0, 2.0, here)
        return torch.stack([-margin, margin], 1) * self.one


OWN = [
    (schema_of((0, 400), (20, 60), protected=["x1=20-60:20"]), Between(30, 38, -2.0)),
    (schema_of((0, 400), (1, 3), protected=["x1"]), Between(1, 3, 0.0)),
]


@pytest.mark.parametrize("step", [0.1, 1.0])
@pytest.mark.parametrize(("schema", "module"), OWN, ids=["stray", "edge"])
def test_rows_of_one_key_that_differ_by_their_own_value_are_those_of_the_literal_loop(
    step, schema, module
):
    target, generator = target_of(schema, module), Tensors(schema)
    here = device.join_on_device(target, generator)
    latents = generator.latents_at(3, torch.arange(600))
    plane = boundary.random(latents, np.random.default_rng(3), offset=0.2)
    normal = plane.normal.numpy()
    expected, _ = naive.probe(
        target.score, schema, generator.decode, normal, plane.offset, latents.numpy(), step
    )
    assert expected
    for chunk in (600, 131, 7):
        found, _, _ = probed(here, plane, latents, step, chunk)
        assert found == expected


PROBLEMS = [(COARSE, COARSE_MODEL), (FINE, FINE_MODEL), (WIDE, WIDE_MODEL)]


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("step", [0.0, 0.3, 1.0])
@pytest.mark.parametrize(("schema", "module"), PROBLEMS, ids=["coarse", "fine", "wide"])
def test_probing_is_the_literal_loop(seed, step, schema, module):
    target, generator = target_of(schema, module), Tensors(schema)
    here = device.join_on_device(target, generator)
    latents = generator.latents_at(seed, torch.arange(120))
    if schema is WIDE:
        latents[60:] = latents[torch.arange(60).flip(0) // 2]  # so that keys meet
    plane = boundary.random(latents, np.random.default_rng(seed), offset=0.2)
    expected, expected_seen = naive.probe(
        target.score,
        schema,
        generator.decode,
        plane.normal.numpy(),
        plane.offset,
        latents.numpy(),
        step,
    )
    assert expected
    for chunk in (120, 31):
        found, seen, n_checked = probed(here, plane, latents, step, chunk)
        assert found == expected
        assert len(seen) == n_checked == len(expected_seen)


def test_keys_that_share_a_name_are_told_apart(monkeypatch):
    """A first hash with five values: every block has to take another salt."""
    names = Packing.names
    monkeypatch.setattr(
        Packing, "names", lambda self, w: names(self, w) % 5 if self.salt < 2 else names(self, w)
    )
    test_probing_is_the_literal_loop(0, 0.3, WIDE, WIDE_MODEL)


# -- the whole search -------------------------------------------------------------------


def same_run(mine, expected):
    assert mine.stop == expected.stop
    # Rows are asked in other batches, of which a few prove needless.
    assert abs(mine.queries - expected.queries) <= 0.01 * expected.queries
    assert mine.findings.rows_checked == expected.findings.rows_checked
    assert mine.findings.flips == expected.findings.flips
    ours, theirs = mine.findings.all(), expected.findings.all()
    np.testing.assert_array_equal(ours.rows, theirs.rows)
    np.testing.assert_array_equal(ours.partner, theirs.partner)
    np.testing.assert_array_equal(ours.causes, theirs.causes)
    np.testing.assert_allclose(ours.score, theirs.score, rtol=1e-9)
    np.testing.assert_allclose(ours.partner_score, theirs.partner_score, rtol=1e-9)
    assert set(ours.origin) == {"limi"}


@pytest.mark.parametrize(
    "budget",
    [Budget(), Budget(max_rows=700), Budget(max_findings=40), Budget(max_queries=3_000)],
    ids=["all", "rows", "findings", "queries"],
)
@pytest.mark.parametrize(
    ("schema", "module"),
    [*PROBLEMS[:2], (STRAY, STRAY_MODEL)],
    ids=["coarse", "fine", "stray"],
)
def test_a_search_on_the_device_finds_what_arrays_find(schema, module, budget):
    method = LIMI(n_latents=3_000, n_labelled=1_000)
    plain, there = both(schema, module)
    expected = run(method, plain, budget, 5)
    mine = run(method, there, budget, 5)
    same_run(mine, expected)
    assert len(mine.findings) >= 9
    assert mine.session.facts == pytest.approx(expected.session.facts)


@pytest.mark.parametrize("step", [0.1, 0.5])
@pytest.mark.parametrize("cap", [1, 2, 7, 100, 192, 500, 1_111])
def test_the_device_ends_where_arrays_end_at_any_cap(cap, step):
    method = LIMI(n_latents=1_000, boundary="random", step=step)
    plain, there = both(FINE, FINE_MODEL)
    expected = run(method, plain, Budget(max_rows=cap), 3)
    mine = run(method, there, Budget(max_rows=cap), 3)
    assert mine.findings.rows_checked == expected.findings.rows_checked == cap
    np.testing.assert_array_equal(mine.findings.all().rows, expected.findings.all().rows)
    assert mine.stop == expected.stop == Stop.ROWS


@pytest.mark.parametrize(
    "method",
    [
        LIMI(n_latents=2_000, choice="best", n_labelled=None, per_class=300),
        LIMI(n_latents=2_000, boundary="random"),
        LIMI(n_latents=2_000, step=0.0),
    ],
    ids=["best", "random plane", "no step"],
)
def test_variants_are_the_same_on_the_device(method):
    plain, there = both(FINE, FINE_MODEL)
    same_run(run(method, there, Budget(), 2), run(method, plain, Budget(), 2))


def test_blocks_do_not_matter(monkeypatch):
    plain, there = both(FINE, FINE_MODEL)
    expected = run(LIMI(n_latents=2_000), plain, Budget(), 1)
    for size in (97, 1_000):
        small = replace(there, on_device=replace(there.on_device, chunk=size))
        mine = run(LIMI(n_latents=2_000), small, Budget(), 1)
        np.testing.assert_array_equal(mine.findings.all().rows, expected.findings.all().rows)
        assert mine.findings.rows_checked == expected.findings.rows_checked
    # Nor do the parts in which findings leave the device, also where a budget ends the search.
    for budget in (Budget(), Budget(max_rows=700), Budget(max_findings=50)):
        whole = run(LIMI(n_latents=2_000), there, budget, 1)
        with monkeypatch.context() as patched:
            patched.setattr("limi.methods.limi._AT_ONCE", 7)
            mine = run(LIMI(n_latents=2_000), there, budget, 1)
        same_run(mine, whole)
        assert mine.findings.flips == whole.findings.flips


def test_findings_come_from_the_device_as_rows_are_checked(monkeypatch):
    _, there = both(FINE, FINE_MODEL)
    monkeypatch.setattr("limi.methods.limi._AT_ONCE", 7)
    mine = run(LIMI(n_latents=2_000), there, Budget(), 1)
    rows, found = np.array(mine.rows), np.array([findings for _, findings in mine.curve])
    assert len(np.unique(rows)) > 3
    assert rows[-1] - len(mine.findings) > 100  # which do not flip, and were asked with the others
    np.testing.assert_allclose(found, len(mine.findings) * rows / rows[-1], atol=1)


def test_one_decision_alone_falls_back_to_natural_rows():
    _, there = both(COARSE, linear((0.0, 0.0, 0.0, 0.0), 5.0))
    ran = run(LIMI(n_latents=500), there, Budget(), 0)
    assert len(ran.findings) == 0
    assert ran.findings.rows_checked > 50
    assert any("no boundary could be fitted" in note for note in ran.session.notes)


def test_the_clock_and_an_interrupt_end_a_search_on_the_device():
    _, there = both(FINE, FINE_MODEL)
    ticks = iter(range(10_000))
    method = LIMI(n_latents=3_000, n_labelled=100)
    ran = run(method, there, Budget(max_seconds=3), 0, clock=lambda: float(next(ticks)))
    assert ran.stop == Stop.SECONDS

    def stop(rows):
        raise KeyboardInterrupt

    here = there.on_device
    asked = []
    cut = replace(
        here,
        chunk=200,
        forward=lambda m: stop(m) if asked.append(m) or len(asked) > 12 else here.forward(m),
    )
    ran = run(method, replace(there, on_device=cut), Budget(), 0)
    assert ran.stop == Stop.INTERRUPTED
    assert len(ran.findings)


def test_a_slow_module_on_the_device_is_asked_until_its_time_is_up():
    _, there = both(FINE, FINE_MODEL)
    here = there.on_device
    now = [0.0]
    asked = []

    def slowly(matrix):
        asked.append(len(matrix))
        now[0] += 0.001 * len(matrix)
        return here.forward(matrix)

    slow = replace(there, on_device=replace(here, forward=slowly))
    method = LIMI(n_latents=100_000, boundary="random")
    ran = run(method, slow, Budget(max_seconds=12), 0, clock=lambda: now[0])
    assert ran.stop == Stop.SECONDS
    assert 10 < now[0] <= 13
    assert max(asked) <= 1_100
    # What was asked until then is found, in the order of the loop as far as it got.
    whole = run(method, there, Budget(max_rows=ran.findings.rows_checked), 0)
    mine, theirs = ran.findings.all().rows, whole.findings.all().rows
    assert len(mine) > 50
    n = len(mine) // 2
    np.testing.assert_array_equal(mine[:n], theirs[:n])


def test_a_pair_searches_in_arrays():
    """Its second method knows arrays only, and its first ends in the middle of a stream."""
    _, there = both(FINE, FINE_MODEL)
    with_none = replace(there.on_device, forward=None)
    rng = np.random.default_rng(0)
    batch = next(
        b
        for b in LIMI(n_latents=500).explore(Session(replace(there, on_device=with_none)), rng)
        if len(b)
    )
    assert not batch.flips.all()


def test_a_module_elsewhere_or_a_generator_of_arrays_has_no_device():
    target = target_of(COARSE, COARSE_MODEL)
    assert isinstance(device.join_on_device(target, Tensors(COARSE)), OnDevice)
    assert device.join_on_device(target, Rounding(COARSE)) is None
    assert device.join_on_device(target, None) is None
