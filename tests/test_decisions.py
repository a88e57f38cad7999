"""The edge: what lies within rounding of it flips nothing, for any oracle, and steers no search."""

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import limi
from limi import methods
from limi.audits.verify import ask_again
from limi.decisions import (
    DECIDED_AGAINST,
    DECIDED_FOR,
    EDGE,
    OTHER_CLASS,
    contradicts,
    differ,
    favors,
    opposes,
    parse_rule,
    round_scores,
)
from limi.gpu import place
from limi.models.gradients import by_loss
from limi.search.check import check_rows
from limi.search.findings import Findings
from limi.search.frugal_check import FlipStatistics, check_frugally
from limi.system.watch import Watch
from limi.table.rows import distinct, uniform
from limi.testing.methods import the_last_digits_change_nothing
from tests.gpu.test_verdicts import Tensors
from tests.methods.small import SMALL
from tests.naive import check as naive
from tests.networks import declared, target_of
from tests.toy import Linear, Rounding, grid, schema_of, task

ON_EDGE = [0.5 + step for step in (0.0, 1e-16, -1e-16, 1e-12, -1e-12, 0.9 * EDGE, -0.9 * EDGE)]
OFF_EDGE = [0.0, 0.3, 0.5 - 1.1 * EDGE, 0.5 + 1.1 * EDGE, 0.7, 1.0]


# -- the definitions --------------------------------------------------------------------


def test_a_score_is_on_one_side_or_on_the_edge():
    scores = np.array(ON_EDGE + OFF_EDGE)
    clear = np.repeat([False, True], [len(ON_EDGE), len(OFF_EDGE)])
    assert (favors(scores) | opposes(scores)).tolist() == clear.tolist()
    assert favors(scores).tolist() == (clear & (scores > 0.5)).tolist()
    assert favors(np.array([DECIDED_FOR, DECIDED_AGAINST])).tolist() == [True, False]
    assert opposes(np.array([DECIDED_FOR, DECIDED_AGAINST])).tolist() == [False, True]
    assert not favors(np.array([np.nan])).any()
    assert not opposes(np.array([np.nan])).any()


def test_two_decisions_differ_where_both_are_clear():
    scores = np.array([*ON_EDGE, *OFF_EDGE, np.nan])
    one, other = (grid.ravel() for grid in np.meshgrid(scores, scores))
    product = [naive.side(a) * naive.side(b) < 0 for a, b in zip(one, other, strict=True)]
    assert differ(one, other).tolist() == product
    assert differ(one, other).sum() == 2 * 3 * 3


def test_scores_contradict_a_decision_only_where_they_are_clear():
    scores = np.array([0.2, 0.5 - 1e-12, 0.5, 0.5 + 1e-12, 0.8])
    assert contradicts(scores, np.ones(5, dtype=bool)).tolist() == [True, *[False] * 4]
    assert contradicts(scores, np.zeros(5, dtype=bool)).tolist() == [*[False] * 4, True]


def test_tensors_are_judged_as_arrays():
    scores = np.array([*ON_EDGE, *OFF_EDGE, np.nan])
    there = torch.tensor(scores)
    for judge in (favors, opposes):
        assert judge(there).tolist() == judge(scores).tolist()
    assert differ(there[:, None], there).tolist() == differ(scores[:, None], scores).tolist()
    np.testing.assert_array_equal(round_scores(there).numpy(), round_scores(scores))


# -- the oracles ------------------------------------------------------------------------


class Looked(torch.nn.Module):
    """Scores by a table of all rows: about half of them on the edge."""

    def __init__(self, schema, seed):
        super().__init__()
        rng = np.random.default_rng(seed)
        sizes = schema.sizes.astype(int)
        scores = np.where(
            rng.random(sizes) < 0.4, rng.choice(ON_EDGE, sizes), rng.choice(OFF_EDGE, sizes)
        )
        self.table = torch.nn.Parameter(torch.tensor(scores), requires_grad=False)

    def forward(self, rows):
        return self.table[tuple(rows.long().T)]


TWO = schema_of((0, 30), (0, 4), (0, 1), protected=["x2"])
MANY = schema_of((0, 30), (0, 2), (0, 1), (0, 2), protected=["x2", "x3"])


@pytest.mark.kernels
@pytest.mark.parametrize("rule", ["widest", "first"])
@pytest.mark.parametrize("schema", [TWO, MANY], ids=["two", "many"])
@pytest.mark.parametrize("seed", range(4))
def test_every_oracle_leaves_the_edge_alone(schema, seed, rule):
    module = declared(Looked(schema, seed), "probability")
    target = target_of(schema, module)
    rows = grid(schema)
    full = check_rows(target.score, schema, rows, partner=rule)
    scores = target.score(rows).reshape(schema.sizes.astype(int))
    expected = [
        naive.verdict(lambda asked: scores[tuple(asked.astype(int).T)], schema, row, rule)
        for row in rows
    ]
    assert full.flips.tolist() == [flips for flips, _, _ in expected]
    assert 0 < full.flips.sum() < len(rows)
    partners = full.partner[:, schema.protected_index]
    assert partners.tolist() == [list(values) for _, _, values in expected]
    assert differ(full.score, full.partner_score)[full.flips].all()

    frugal = check_frugally(
        target.score,
        schema,
        rows,
        known=distinct(schema, rows),
        statistics=FlipStatistics(len(schema.combinations)),
        max_batch=50,
    )
    np.testing.assert_array_equal(frugal.flips, full.flips)
    assert differ(frugal.score, frugal.partner_score)[frugal.flips].all()

    there = place.join_on_device(target, Tensors(schema))
    found = there.check(torch.tensor(rows), lambda n: None, 64, rule)
    np.testing.assert_array_equal(found.flips.numpy(), full.flips)
    np.testing.assert_array_equal(found.partner.numpy(), full.partner[:, schema.protected_index])


def test_favorable_decisions_are_counted_clear_of_the_edge():
    module = declared(Looked(MANY, 0), "probability")
    target = target_of(MANY, module)
    rows = grid(MANY)
    checked = check_rows(target.score, MANY, rows)
    expected = [
        sum(naive.side(s) > 0 for s in target.score(with_values(rows, values)))
        for values in MANY.combinations
    ]
    assert checked.favorable.tolist() == expected


def with_values(rows, values):
    asked = rows.copy()
    asked[:, MANY.protected_index] = values
    return asked


def test_a_decision_on_the_edge_shows_no_habit():
    module = declared(Looked(MANY, 1), "probability")
    target = target_of(MANY, module)
    rows = grid(MANY)
    rows = rows[distinct(MANY, rows).first]
    statistics = FlipStatistics(len(MANY.combinations))
    check_frugally(
        target.score, MANY, rows, known=distinct(MANY, rows), statistics=statistics, max_batch=50
    )
    sides = np.array([naive.side(s) for s in target.score(rows)])
    # A key whose first answer is clear is asked on; of one on the edge nothing is counted.
    assert statistics.asked.sum() <= (sides != 0).sum() * (len(MANY.combinations) - 1)
    unclear = rows[sides == 0]
    fresh = FlipStatistics(len(MANY.combinations))
    check_frugally(
        target.score, MANY, unclear, known=distinct(MANY, unclear), statistics=fresh, max_batch=50
    )
    assert not fresh.asked.any()


def test_the_second_check_drops_what_lies_on_the_edge():
    schema = schema_of((0, 3), (0, 1), protected=["x1"])
    table = torch.tensor([[0.3, 0.7], [0.3, 0.5 + 1e-12], [0.5, 0.7], [0.3, 0.4]])
    module = declared(Looked(schema, 0), "probability")
    module.table.data = table.double()
    target = target_of(schema, module)
    claimed = check_rows(lambda rows: rows[:, 1], schema, grid(schema))
    findings = Findings(schema)
    findings.add(claimed)
    _, flips = ask_again(target, findings.all(), Watch())
    assert flips.tolist() == [True, False, False, False]


def test_the_loss_on_the_edge_is_that_of_the_unfavorable_decision():
    slope = np.ones((4, 1))
    told = by_loss(np.array([-1e-9, 0.0, 1e-17, 1e-9]), slope)
    np.testing.assert_allclose(told, 0.5, rtol=1e-6)


# -- searches ---------------------------------------------------------------------------

# Round weights: a row in forty lies on the edge, up to rounding.
TIED = schema_of((0, 40), (0, 40), (-5, 5), (0, 9), (1, 5), (0, 1), protected=["x4", "x5"])
TIED_MODEL = Linear((0.15, -0.2, 0.3, 0.1, 0.5, 1.0), 0.2)
BLACK = [name for name in methods.names() if "neurons" not in methods.get(name).needs]


def tied_task(**more):
    rows = uniform(TIED, 400, np.random.default_rng(0))
    made = task(TIED, TIED_MODEL, rows, generator=Rounding(TIED), **more)
    return replace(made, score=TIED_MODEL.unchecked)


@pytest.mark.parametrize(
    ("name", "preset"),
    [(name, preset) for name in BLACK for preset in methods.presets(name) or {"": {}}],
)
def test_rows_on_the_edge_steer_no_search(name, preset):
    settings = SMALL.get(name, {}) | ({"preset": preset} if preset else {})
    the_last_digits_change_nothing(lambda: methods.parse(name, settings), tied_task)


def test_an_audit_of_a_model_with_ties_finds_none_of_them():
    known = limi.data.load("credit")
    rng = np.random.default_rng(0)

    def model(frame):
        # Half of the people lie on the edge, and which side of it is left to chance.
        margin = np.where(frame["duration"] % 2 == 0, 0.0, 0.2 * (frame["sex"] - 0.5))
        return 0.5 + margin + rng.uniform(-1e-12, 1e-12, len(frame))

    result = limi.audit(
        model,
        known.frame,
        protected=["sex"],
        target=known.target,
        schema=known.schema,
        max_rows=2_000,
        rate_rows=500,
        seed=0,
    )
    assert len(result.found) > 100
    assert (result.found.rows[:, known.schema.position("duration")] % 2 == 1).all()
    assert result.summary.unconfirmed == 0


# -- one place --------------------------------------------------------------------------

# What else is compared with one half: draws, shares and settings, but no score.
HALVES = {
    "cli/fit.py": ["0 <= held_out <= 0.5"],
    "table/steps.py": ["positions > self.top + 0.5"],
    "gates/_run.py": ["0 < error < 0.5"],
    "images/vae.py": ["torch.rand(shape, **options) < 0.5"],
    "methods/_gradient.py": ["rng.random(len(rows)) < 0.5"],
    "methods/adf.py": ["rng.random(len(up)) < 0.5"],
    "methods/aequitas.py": ["draws[:, 2] < 0.5"],
    "methods/causal.py": ["draws[:, 2] < 0.5"],
    "methods/limi.py": ["0.5 <= self.threshold < 1"],
    "repairs/_labels.py": ["share == 0.5", "share > 0.5"],
    "repairs/_settings.py": ["0 <= self.held_out <= 0.5"],
    "report/charts.py": ["at.x < 0.5"],
    "system/words.py": ["value != 0.5"],
}


def halves(path):
    """Comparisons with one half, and with sums of which it is a part."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Compare) and any(
            isinstance(part, ast.Constant) and part.value == 0.5
            for side in (node.left, *node.comparators)
            for part in ([side] if isinstance(side, ast.Constant) else ast.walk(side))
            if not isinstance(side, ast.Call)
        ):
            yield ast.unparse(node)


def test_which_way_a_score_decides_is_said_in_one_place():
    package = Path(limi.__file__).parent
    told = {
        str(path.relative_to(package)): sorted(halves(path))
        for path in sorted(package.rglob("*.py"))
        if path.name != "decisions.py" and any(halves(path))
    }
    assert told == HALVES, "ask limi.decisions which way a score decides"


# What judges answers by a rule, and the places that speak of favorable decisions alone.
JUDGES = {"check_rows", "check_frugally", "check_population", "always_flip", "Task"}
FAVORABLE_ALONE = {"twins", "proofs", "changes", "images", "testing"}


def calls_without_a_rule(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = getattr(getattr(node, "func", None), "id", getattr(node, "attr", ""))
        if not isinstance(node, ast.Call) or name not in JUDGES:
            continue
        given = {keyword.arg for keyword in node.keywords}
        if "decision" not in given and not (name == "check_population" and len(node.args) == 4):
            yield name


def test_whoever_asks_whether_rows_flip_says_by_which_rule():
    package = Path(limi.__file__).parent
    silent = {
        str(path.relative_to(package)): list(calls_without_a_rule(path))
        for path in sorted(package.rglob("*.py"))
        if path.relative_to(package).parts[0] not in FAVORABLE_ALONE
        and any(calls_without_a_rule(path))
    }
    assert silent == {"repairs/_labels.py": ["check_rows"]}, "pass the rule of the run on"


def test_an_answer_is_shown_by_its_rule_with_the_digits_that_tell_its_side():
    assert [parse_rule("favorable").show(x) for x in (0.71349, 0.500004)] == [
        *("0.713", "0.500004"),
    ]
    assert parse_rule("difference > 5").show(1203.52) == "1,204"
    classes = replace(parse_rule("class"), labels=("low", "high"))
    assert [classes.show(x) for x in (0.4, 1.2, 2.1)] == ["low", "high", OTHER_CLASS]
