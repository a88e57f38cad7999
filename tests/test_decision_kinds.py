"""Decisions that are classes, numbers or bands, from the model's answers to the report."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import limi
from limi import methods, models
from limi.audits.problem import prepare
from limi.audits.summary import Summary
from limi.decisions import AS_DECIDED, Bands, Classes, Difference, Favorable, parse_rule
from limi.errors import BadModel, BadTable, GivesNumbers, InvalidInput
from limi.metrics._quantiles import quantile_interval
from limi.report import gate as gate_words
from limi.report import html, outcomes, text
from limi.search.check import check_rows
from tests.naive import decisions as naive

COLUMNS = ["sex", "age", "km"]
GRADES = ["low", "medium", "high", "top"]


def people(n=240, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], n),
            "age": rng.integers(18, 60, n),
            "km": rng.integers(0, 30, n),
        }
    )
    young = (frame.sex == "M") & (frame.age < 30)
    price = 200.0 + 5 * frame.km + 40 * young + frame.age
    places = np.digitize(price, [270, 310, 360])
    return frame.assign(price=price, grade=np.array(GRADES)[places])


def quote(frame):
    young = (frame.sex == "M") & (frame.age < 30)
    return (200.0 + 5 * frame.km + 40 * young + frame.age).to_numpy()


def shares_of(frame):
    """One probability for each grade, in sorted order."""
    places = np.digitize(quote(frame), [270, 310, 360])
    shares = np.full((len(frame), 4), 0.1)
    shares[np.arange(len(frame)), places] = 0.7
    return shares[:, [GRADES.index(grade) for grade in sorted(GRADES)]]


@pytest.fixture(scope="module")
def table():
    return people()


def find(model, table, target, **given):
    given = {"method": "real", "generator": None, "rate_rows": 240, **given}
    return limi.audit(model, table[[*COLUMNS, target]], protected="sex", target=target, **given)


# -- rules of two answers ---------------------------------------------------------------


def on_both(rule, name, one, other):
    """What a rule says of arrays, once tensors have said the same."""
    told = getattr(rule, name)(one, other)
    there = getattr(rule, name)(torch.from_numpy(one), torch.from_numpy(other))
    assert np.array_equal(there.numpy(), told)
    return told.tolist()


def answers_of(rule, shares):
    best, second = np.sort(shares, axis=1)[:, [-1, -2]].T
    return rule.carry(shares.argmax(axis=1), best / (best + second) - 0.5)


def test_classes_differ_where_both_are_ahead():
    rng = np.random.default_rng(4)
    shares, others = rng.dirichlet(np.ones(4), (2, 300))
    shares[:20, 1] = shares[:20, 2] = shares[:20].max(axis=1)  # even
    rule = Classes(tuple("abcd"))
    answers = [answers_of(rule, rows) for rows in (shares, others)]
    pairs = zip(shares.tolist(), others.tolist(), strict=True)
    wanted = [naive.classes_differ(*pair) for pair in pairs]
    assert on_both(rule, "differ", *answers) == wanted
    assert not any(wanted[:20])
    assert 50 < sum(wanted) < 280
    apart = np.abs(shares.argmax(axis=1) - others.argmax(axis=1))
    assert on_both(replace(rule, ordered=True), "gap", *answers) == apart.tolist()
    assert on_both(rule, "gap", *answers) == (apart > 0).tolist()


@pytest.mark.parametrize("relative", [False, True])
def test_numbers_differ_where_they_are_further_apart_than_allowed(relative):
    rng = np.random.default_rng(5)
    one = rng.normal(0, 50, 300).round(2)
    other = one + rng.choice([0, 2.5, -2.5, 40, 2.5 + 1e-9], 300)
    rule = Difference(0.1 if relative else 2.5, relative)
    pairs = zip(one, other, strict=True)
    wanted = [naive.numbers_differ(a, b, rule.least, relative) for a, b in pairs]
    assert on_both(rule, "differ", one, other) == wanted
    assert 20 < sum(wanted) < 250


def test_bands_are_counted_between_numbers_clear_of_every_cut():
    cuts = (300.0, 580.0, 670.0, 740.0)
    rng = np.random.default_rng(6)
    near = np.array([580.0, 580.0001, 579.9999, 580.01, 740.0])
    one = np.concatenate([rng.uniform(200, 850, 200), near])
    other = np.concatenate([rng.uniform(200, 850, 200), np.full(5, 690.0)])
    rule = Bands(cuts)
    wanted = [naive.bands_apart(a, b, list(cuts)) for a, b in zip(one, other, strict=True)]
    differ = np.array(on_both(rule, "differ", one, other))
    assert differ.tolist() == [apart > 0 for apart in wanted]
    assert np.where(differ, on_both(rule, "gap", one, other), 0).tolist() == wanted


@pytest.mark.parametrize("cuts", [(), (580.0, 300.0), (300.0, 300.0), (300.0, float("nan"))])
def test_bands_must_rise(cuts):
    with pytest.raises(InvalidInput, match="give increasing numbers"):
        Bands(cuts)


RULES = [
    Classes(tuple("abc")),
    Classes(tuple("abc"), ordered=True),
    Difference(0.1),
    Difference(0.1, relative=True),
    Bands((1.0, 1.6)),
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_nan_differs_from_nothing_and_no_model_may_give_one(rule):
    nan, number = np.array([np.nan]), np.array([1.4])
    assert not rule.differ(nan, number).any()
    assert not rule.differ(number, nan).any()
    assert rule.allows(np.array([1.4, np.nan, np.inf, -np.inf])).tolist() == [True, *[False] * 3]


@pytest.mark.parametrize("rule", RULES[2:], ids=str)
def test_noise_of_half_the_tolerance_makes_no_flip_of_equals(rule):
    rng = np.random.default_rng(7)
    exact = np.repeat([1.0, 1.6, 1.0 + 1e-3, 0.9, 1.1], 200)
    noisy = exact + rng.uniform(-0.5e-6, 0.5e-6, exact.shape)
    assert not rule.differ(noisy, np.roll(noisy, 1))[np.arange(len(exact)) % 200 > 0].any()
    as_score = rule.settle(exact).as_score(exact)
    assert ((as_score >= 0) & (as_score <= 1)).all()


def edgy(rows, edge, step):
    """Numbers on an edge, beside it and far away: (n,) of group 0 to 2 and x 0 to 9."""
    group, x = rows.T
    return edge + np.where(x < 4, 0.0, step * (group - 1) * (x > 6) + step * (group == 2) * (x < 7))


def classes_on_edge(rows):
    """Places with a lead that is nothing for some, and for others clear."""
    group, x = rows.T
    return np.where(x < 4, 0.0, np.where(x > 6, group, 2.0 * (group == 1))) + np.where(
        x == 5, 0.5e-6, 0.2
    )


@pytest.mark.parametrize(
    ("rule", "answers", "size"),
    [
        (AS_DECIDED, lambda rows: edgy(rows, 0.5, 0.1), 1.0),
        (Favorable(0.3), lambda rows: edgy(rows, 0.3, 0.1), 1.0),
        (
            Difference(30.0),
            lambda rows: 1e4 + 30 * (rows[:, 0] == 2) + 90 * ((rows[:, 0] == 1) & (rows[:, 1] > 5)),
            1e4,
        ),
        (Difference(0.0, spread=50.0), lambda rows: edgy(rows, 0.0, 0.01), 50.0),
        (Difference(0.1, relative=True), lambda rows: edgy(rows, 100.0, 10.0), 100.0),
        (Bands((1e4,)), lambda rows: edgy(rows, 1e4, 5.0), 1e4),
        (Bands((0.0, 1.0), spread=50.0), lambda rows: edgy(rows, 0.0, 1.5), 50.0),
        (Classes(tuple("abc")), classes_on_edge, 0.4),
        (Classes(tuple("abc"), ordered=True), classes_on_edge, 0.4),
    ],
    ids=[
        *("as decided", "score", "difference", "any difference", "relative"),
        *("one cut", "two cuts", "classes", "ordered classes"),
    ],
)
def test_verdicts_hold_under_noise_of_half_the_tolerance_and_in_any_order(rule, answers, size):
    schema = limi.Schema(
        (
            limi.Column(name="g", kind="numerical", high=2, step=1),
            limi.Column(name="x", kind="numerical", high=9, step=1),
        )
    ).protect({"g": [0, 1, 2]})
    rng = np.random.default_rng(8)
    rows = np.column_stack([rng.integers(0, 3, 60), rng.integers(0, 10, 60)]).astype(float)

    def exact(asked):
        told = answers(asked)
        return rule.move(told) if rule.kind == "favorable" else told

    def noisy(asked):
        told = answers(asked) + rng.uniform(-0.5e-6, 0.5e-6, len(asked)) * size
        return rule.move(told) if rule.kind == "favorable" else told

    plain = check_rows(exact, schema, rows, decision=rule)
    order = rng.permutation(len(rows))
    for score, batch in ((exact, 7), (noisy, 5), (noisy, 1 << 10)):
        again = check_rows(score, schema, rows[order], decision=rule, max_batch=batch)
        assert np.array_equal(again.flips, plain.flips[order])
        assert np.array_equal(again.partner, plain.partner[order])
    assert 0 < plain.flips.sum() < len(rows)


@pytest.mark.parametrize(
    "text",
    [
        "class",
        "difference > 25",
        "difference > 0.1",
        *(f"difference > {n} %" for n in (7, 10, 0.3, 33.3333333333)),
        "bands = -1.5, 300, 580",
    ],
)
def test_a_rule_reads_as_it_is_written(text):
    assert str(parse_rule(text)) == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bands = 580, 300", "give increasing numbers"),
        ("bands = a, b", "'a' is not a number"),
        ("difference > -1", "must be 0 or more"),
        ("difference > x", "'x' is not a number"),
        ("score > 30", "scores lie between 0 and 1"),
        ("score > 30 %", "it can be 'favorable'"),
        ("klass", "it can be 'favorable'"),
        (3, "decision is 3; it can be"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_with_what_would_do(text, words):
    with pytest.raises(InvalidInput, match=words):
        parse_rule(text)


# -- whole runs -------------------------------------------------------------------------


def naive_flips(table, differs):
    """Rows of the table whose quote differs from that of the other sex."""
    free = table[["age", "km"]]
    quotes = [quote(free.assign(sex=sex)) for sex in ("F", "M")]
    return [differs(float(a), float(b)) for a, b in zip(*quotes, strict=True)]


def distinct_flips(table, flips):
    return len(set(map(tuple, table.loc[flips, ["age", "km"]].to_numpy())))


def test_findings_of_numbers_are_those_of_a_loop_over_people(table):
    result = find(quote, table, "price", decision="difference > 25")
    flips = naive_flips(table, lambda a, b: naive.numbers_differ(a, b, 25, False))
    assert len(result.findings) == distinct_flips(table, flips)
    assert result.rates["real"].estimate == pytest.approx(np.mean(flips))
    assert (result.findings["severity"] == 40).all()
    gap = result.findings["prediction"] - result.findings["partner_prediction"]
    assert set(gap.abs()) == {40.0}
    assert result.summary.metrics["severity"]["answer_gap"]["value"] == 40
    assert "score_gap" not in result.summary.metrics["severity"]


def test_findings_of_bands_are_those_of_a_loop_over_people(table):
    result = find(quote, table, "price", decision="bands = 250, 270, 330")
    cuts = [250.0, 270.0, 330.0]
    flips = naive_flips(table, lambda a, b: naive.bands_apart(a, b, cuts) > 0)
    assert len(result.findings) == distinct_flips(table, flips)
    assert set(result.findings["severity"]) == {2.0, 3.0}  # one band apart, or two
    assert result.summary.decision == "bands = 250, 270, 330"
    assert "bands over all protected values" in text.render(result.summary)


def test_the_severity_of_bands_is_how_many_all_variants_span(tmp_path):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"town": rng.choice(["a", "b", "c"], 90), "km": rng.integers(0, 30, 90)})
    towns = {"a": 0.0, "b": 10.0, "c": -10.0}
    frame["price"] = frame.km + 0.0

    def price(asked):
        return (asked.km + asked.town.map(towns).astype(float)).to_numpy()

    cuts = [5.5, 15.5, 25.5]
    given = {"protected": "town", "target": "price", "method": "real", "generator": None}
    decision = "bands = 5.5, 15.5, 25.5"
    result = limi.audit(price, frame, decision=decision, out=tmp_path / "run", **given)
    wanted = [
        naive.bands_spanned([km + shift for shift in towns.values()], cuts)
        for km in result.findings.km
    ]
    assert result.findings.severity.tolist() == wanted
    assert set(wanted) == {2, 3}
    # From the middle town the widest partner is one band away, and the variants span three.
    apart = (result.findings.prediction - result.findings.partner_prediction).abs()
    assert ((apart == 10) & (result.findings.severity == 3)).any()
    spans = [naive.bands_spanned([km + s for s in towns.values()], cuts) for km in frame.km]
    (outcome,) = (one for one in result.summary.outcomes if one.population == "real")
    assert list(outcome.spans) == np.bincount(spans)[1:].tolist()
    again = limi.reopen(tmp_path / "run", table=frame, model=price)
    assert again.found.span.tolist() == wanted
    few = limi.audit(price, frame, decision=decision, max_queries=60, rate_rows=0, **given)
    assert (few.findings.severity >= 2).all()


def test_findings_of_classes_are_those_of_a_loop_over_people(table):
    result = find(shares_of, table, "grade", order=GRADES)
    flips = naive_flips(
        table, lambda a, b: np.digitize(a, [270, 310, 360]) != np.digitize(b, [270, 310, 360])
    )
    assert len(result.findings) == distinct_flips(table, flips)
    found = result.findings
    places = [found[name].map(GRADES.index) for name in ("class", "partner_class")]
    assert ((places[0] - places[1]).abs() == found["severity"]).all()
    assert np.allclose(found["lead"], 0.7 / 0.8 - 0.5)


def test_a_regressor_without_a_tolerance_gets_one_and_goes_on(table):
    model = LinearRegression().fit(table[["age", "km"]].assign(sex=table.sex == "M"), table.price)

    def predict(frame):
        return model.predict(frame[["age", "km"]].assign(sex=frame.sex == "M"))

    result = find(predict, table, "price")
    least = float(f"{0.1 * table.price.std(ddof=0):.3g}")
    assert result.summary.decision == f"difference > {least!r}"
    assert any("a tenth of the standard deviation" in note for note in result.summary.notes)


def seeded(module):
    draw = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weights in module.parameters():
            weights.copy_(torch.randn(weights.shape, generator=draw))
    return module


def numeric(table):
    return table.assign(sex=(table.sex == "M").astype(int))


def test_an_estimator_that_predicts_numbers_is_guessed(table):
    frame = numeric(table)
    model = LinearRegression().fit(frame[COLUMNS], frame.price)
    assert find(model, frame, "price").summary.kind == "number"
    stars = frame.assign(stars=frame.km % 5)
    rated = LinearRegression().fit(frame[COLUMNS], stars.stars)
    assert find(rated, stars, "stars").summary.kind == "number"
    with pytest.raises(GivesNumbers, match="is a regressor and returns numbers"):
        find(model, frame.assign(yes=frame.km % 2), "yes", decision="favorable")


@pytest.mark.parametrize(
    ("target", "model", "decision", "shown"),
    [
        ("price", quote, "difference > 25", "prediction"),
        ("price", quote, "bands = 251, 271, 331.5", "prediction"),
        ("grade", shares_of, "class", "class"),
    ],
)
def test_a_gate_counts_flips_by_the_rule(table, target, model, decision, shown):
    given = {"protected": "sex", "target": target, "decision": decision}
    frame = table[[*COLUMNS, target]]
    rate = find(model, table, target, decision=decision).rates["real"].estimate
    assert 0.05 < rate < 0.9
    broken = limi.gate(model, frame, "real_rate <= 1 %", generator=None, **given)
    assert (broken.answer, broken.decision) == ("fail", decision)
    told = gate_words.example(broken.examples[0], broken)
    assert f": {shown} " in told
    if target == "grade":
        assert any(f"{one} -> {other};" in told for one in GRADES for other in GRADES)
    kept = limi.gate(model, frame, f"real_rate <= {100 * rate + 1:.2f} %", generator=None, **given)
    (judged,) = kept.rules
    assert kept.answer == "pass"
    assert judged.estimate.value == pytest.approx(rate)


def test_a_regressor_that_cannot_be_opened_is_not_blamed_on_its_target(table):
    with pytest.raises(InvalidInput, match="is not of the form KIND:PLACE"):
        find("price.skops", table, "price")


def test_errors_of_groups_are_told_of_held_out_rows(table):
    frame = numeric(table)
    model = LinearRegression().fit(frame[COLUMNS], frame.price)
    held = people(80, seed=5).pipe(numeric)
    result = find(model, frame, "price", held_out=held[[*COLUMNS, "price"]])
    outcome = next(one for one in result.summary.outcomes if one.population == "held-out")
    errors = (model.predict(held[COLUMNS]) - held.price).abs().groupby(held.sex).mean()
    told = {group.value: group.mean_absolute_error for group in outcome.groups}
    assert told == pytest.approx({"0": errors[0], "1": errors[1]})
    assert outcome.gaps["mean_absolute_error_difference"] == pytest.approx(np.ptp(errors))
    forest = RandomForestClassifier(9, random_state=0).fit(frame[COLUMNS], frame.grade)
    result = find(forest, frame, "grade", decision="class", held_out=held[[*COLUMNS, "grade"]])
    outcome = next(one for one in result.summary.outcomes if one.population == "held-out")
    right = (forest.predict(held[COLUMNS]) == held.grade).groupby(held.sex).mean()
    assert [group.accuracy for group in outcome.groups] == pytest.approx(list(right))


def test_three_labels_without_a_rule_get_a_sentence_with_the_choices(table):
    with pytest.raises(InvalidInput, match=r"favorable.*decision.*class.*order"):
        find(shares_of, table, "grade")
    stars = table.assign(stars=table.km % 5)
    with pytest.raises(InvalidInput, match="'difference > D'"):
        find(lambda frame: frame.km.to_numpy() % 5, stars, "stars")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"order": "low,medium,high"}, "leaves out 'top'"),
        ({"order": "low,medium,high,top,top"}, "names a label twice"),
        ({"order": "low,medium,high,best"}, "'best', which is not in the target column"),
        ({"order": GRADES, "decision": "score > 0.3"}, "only the decision 'class'"),
        ({"order": 5}, "order is 5; it must be"),
    ],
)
def test_an_order_names_every_label_once(table, given, words):
    with pytest.raises(InvalidInput, match=words):
        find(shares_of, table, "grade", **given)


def test_numbers_that_are_none_are_refused(table):
    with pytest.raises(BadModel, match="are not finite numbers, the first of them nan"):
        find(lambda frame: np.full(len(frame), np.nan), table, "price", decision="difference > 1")
    with pytest.raises(BadModel, match="which is not a number"):
        find(lambda frame: ["a"] * len(frame), table, "price", decision="difference > 1")
    with pytest.raises(BadModel, match="4 values per row; return one number"):
        find(shares_of, table, "price", decision="difference > 1")


def test_cuts_and_differences_that_part_no_one_are_pointed_out(table):
    notes = find(quote, table, "price", decision="bands = 9000").summary.notes
    assert any("the cuts separate none of them" in note for note in notes)
    notes = find(quote, table, "price", decision="difference > 9000").summary.notes
    assert any("no two of them are far enough apart" in note for note in notes)


def test_a_class_that_the_table_never_has_is_shown_as_another(table):
    frame = numeric(table)
    model = RandomForestClassifier(5, random_state=0).fit(frame[COLUMNS], frame.grade)
    few = frame[frame.grade != "top"]
    result = find(model, few, "grade", decision="class")
    assert any("'top', which the target column never holds" in n for n in result.summary.notes)
    with pytest.raises(InvalidInput, match="which the order low, medium, high lacks"):
        find(model, few, "grade", order="low,medium,high")


def test_a_classifier_under_a_rule_of_numbers_compares_its_scores(table):
    frame = numeric(table).assign(cheap=(table.price < 300).astype(int))
    model = LogisticRegression().fit(frame[COLUMNS], frame.cheap)
    result = find(model, frame, "cheap", favorable=1, decision="difference > 0.05")
    score = model.predict_proba(frame[COLUMNS])[:, 1]
    assert result.summary.kind == "number"
    assert 0 <= result.findings["prediction"].min() <= score.max() <= 1
    with pytest.raises(InvalidInput, match="say which label's score to compare"):
        find(model, frame, "cheap", decision="difference > 0.05")


@pytest.mark.parametrize("name", [*methods.names()])
def test_every_method_works_on_every_kind(table, name):
    frame = numeric(table)

    def network(n):
        layers = (torch.nn.Linear(3, 6), torch.nn.ReLU(), torch.nn.Linear(6, n))
        return seeded(torch.nn.Sequential(*layers))

    cases = {
        "difference > 0.02": ("price", network(1)),
        "bands = 0, 5": ("price", network(1)),
        "class": ("grade", network(4)),
    }
    for decision, (target, module) in cases.items():
        given = {"max_rows": 300, "rate_rows": 0, "method": name, "generator": "trees"}
        result = find(module, frame, target, decision=decision, **given)
        assert result.summary.kind == ("class" if decision == "class" else "number")
        rule = result.problem.target.rule
        assert rule.differ(result.found.score, result.found.partner_score).all()
        # It proposes rows only where its tree of the model parts the protected values.
        assert result.summary.rows_checked or name == "vbtx"


def test_a_frugal_search_finds_flips_of_every_kind(table):
    for target, model, decision in (
        ("price", quote, "difference > 25"),
        ("grade", shares_of, "class"),
    ):
        given = table.assign(sex=table.sex.where(table.km % 7 > 0, "X"))
        result = find(
            model, given, target, decision=decision, max_queries=600, rate_rows=0, method="real"
        )
        rule = result.problem.target.rule
        assert len(result.found)
        assert rule.differ(result.found.score, result.found.partner_score).all()


def test_a_finished_run_is_opened_again_with_its_rule(table, tmp_path):
    frame = numeric(table)
    model = RandomForestClassifier(9, random_state=0).fit(frame[COLUMNS], frame.grade)
    for name, given in (("a", {"order": GRADES}), ("b", {"decision": "class"})):
        out = tmp_path / name
        result = find(model, frame, "grade", out=out, **given)
        again = limi.reopen(out, model=model, table=frame[[*COLUMNS, "grade"]])
        assert again.summary.as_dict() == result.summary.as_dict()
        assert np.allclose(again.found.score, result.found.score)
        told = Summary.from_dict(json.loads((out / "summary.json").read_text()))
        assert text.render(told) == text.render(result.summary)


# -- what the report says ---------------------------------------------------------------


def test_numbers_are_told_in_the_unit_of_the_target(table):
    result = find(quote, table, "price", decision="difference > 25", rate_rows=240)
    told = text.render(result.summary, 300)
    assert "of real rows would get a different price (by more than 25) if only sex changed" in told
    young = int((table.age < 30).sum())
    shift = result.summary.outcomes[0].shifts[0]
    assert (shift.value, shift.other, shift.higher, shift.lower) == ("M", "F", young, 0)
    assert (shift.median.value, shift.worst) == (0.0, 40.0)
    assert "the widest apart is 40" in told
    gaps = result.summary.outcomes[0].gaps
    means = table.groupby("sex").price.mean()
    assert gaps["mean_prediction_difference"] == pytest.approx(abs(means["M"] - means["F"]))
    assert gaps["mean_absolute_error_difference"] == 0
    assert "What becomes of people" in html.render(result.summary)


def test_groups_of_few_people_are_counted_and_compared_with_nobody():
    """Two people with an accent in their region must not make the largest gap."""
    frame = people(300).assign(region=np.repeat(["north", "south"], 150))
    frame.loc[:1, "region"] = "élan"

    def dear(asked):
        return quote(asked) + 1_000.0 * (asked.region == "élan").to_numpy()

    given = {"protected": ["region"], "generator": None, "method": "real", "rate_rows": 300}
    data = frame[[*COLUMNS, "region", "price"]]
    result = limi.audit(dear, data, target="price", decision="difference > 25", **given)
    (outcome,) = result.summary.outcomes
    means = pd.Series(dear(frame)).groupby(frame.region).mean()
    assert {group.value: group.n for group in outcome.groups} == {
        "north": 148,
        "south": 150,
        "élan": 2,
    }
    gap = outcome.gaps["mean_prediction_difference"]
    assert gap == pytest.approx(abs(means["north"] - means["south"]))
    assert "too few people to say: élan (2)" in text.render(result.summary, 200)
    known = result.groups.set_index("group")
    assert known.loc["north", "mean_prediction"] == pytest.approx(means["north"])
    assert known.loc["élan", "n"] == 2
    assert np.isnan(known.loc["élan", "mean_prediction"])
    told = result.metrics()["group"]["region"]
    assert told["mean_prediction_difference"]["value"] == pytest.approx(gap)
    assert "classes or numbers" in told["chosen"]
    with pytest.raises(InvalidInput, match="no group is privileged"):
        result.metrics(privileged="region=north")

    approve = limi.audit(
        lambda asked: (quote(asked) > 270).astype(float),
        data[[*COLUMNS, "region"]].assign(region=np.where(frame.region == "élan", "élan", "north")),
        favorable=1,
        output="score",
        **given,
    )
    spd = approve.metrics()["group"]["region"]["parity_gap"]
    assert spd["value"] is None
    assert "has 2 rows" in spd["reason"]


def test_groups_of_classes_have_a_share_for_each(table):
    result = find(shares_of, table, "grade", order=GRADES, rate_rows=240)
    known = result.groups.set_index("group")
    places = pd.Series(np.digitize(quote(table), [270, 310, 360]))
    for place, grade in enumerate(GRADES):
        shares = (places == place).groupby(table.sex).mean()
        assert known[f"selection_rate_{grade}"].to_dict() == pytest.approx(shares.to_dict())
    assert known["accuracy"].tolist() == [1.0, 1.0]
    assert "demographic_parity_difference" in result.metrics()["group"]["sex"]


def test_who_goes_where_is_a_matrix(table):
    result = find(shares_of, table, "grade", order=GRADES, rate_rows=240)
    (move,) = result.summary.outcomes[0].moves
    counts = np.zeros((4, 4), dtype=int)
    free = table[["age", "km"]]
    places = [np.digitize(quote(free.assign(sex=sex)), [270, 310, 360]) for sex in ("F", "M")]
    np.add.at(counts, tuple(places), 1)
    assert (move.value, move.other) == ("F", "M")
    assert np.array_equal(move.counts, counts)
    (words,) = outcomes.tables(result.summary)
    worse = counts.sum() - np.trace(counts)
    assert f"0 a better one as sex F, {worse} a worse one" in words.sentences[0]
    shown = html.render(result.summary)
    assert "As <bdi>sex F</bdi> (down)" in shown
    assert "is decided" in shown


def test_a_quantile_has_an_interval_that_holds_as_often_as_it_says():
    rng = np.random.default_rng(9)
    held = [
        told.low <= 0.0 <= told.high
        for told in (quantile_interval(rng.normal(size=80), 0.5) for _ in range(400))
    ]
    assert 0.93 <= np.mean(held) <= 0.99
    few = quantile_interval(rng.normal(size=40), 0.99)
    assert np.isnan(few.high)


# -- kinds of models --------------------------------------------------------------------


def test_torch_heads_of_several_outputs_and_of_a_number_are_read(table):
    frame = numeric(table)
    network = seeded(torch.nn.Linear(3, 4))
    problem = prepare(
        network, frame[[*COLUMNS, "grade"]], protected="sex", target="grade", decision="class"
    )
    raw = network(torch.tensor(frame[COLUMNS].to_numpy(), dtype=torch.float32)).detach().numpy()
    rule = problem.target.rule
    labels = [rule.show(answer) for answer in problem.target.score(problem.rows)]
    assert labels == [sorted(GRADES)[place] for place in raw.argmax(axis=1)]
    number = seeded(torch.nn.Linear(3, 1))
    problem = prepare(
        number, frame[[*COLUMNS, "price"]], protected="sex", target="price", decision="bands = 1"
    )
    told = number(torch.tensor(frame[COLUMNS].to_numpy(), dtype=torch.float32)).detach().numpy()
    assert np.allclose(problem.target.score(problem.rows), told[:, 0], atol=1e-4)  # float32
    with pytest.raises(BadModel, match="a number needs one output a row"):
        find(network, frame, "price", decision="bands = 1")


def test_boosters_of_classes_and_of_numbers_are_read(table):
    xgboost = pytest.importorskip("xgboost", reason="needs limi[boosters]")
    lightgbm = pytest.importorskip("lightgbm", reason="needs limi[boosters]")
    frame = numeric(table)
    places = frame.grade.map(sorted(GRADES).index)
    cells, grades = frame[COLUMNS].to_numpy(float), rule_of("class")
    data = xgboost.DMatrix(cells, label=places)
    many = xgboost.train({"objective": "multi:softprob", "num_class": 4}, data, 3)
    told = models.wrap(many, labels=tuple(sorted(GRADES)), rule=grades).score(cells)
    assert np.array_equal(np.floor(told), many.predict(data).argmax(axis=1))
    number = xgboost.train(
        {"objective": "reg:squarederror"}, xgboost.DMatrix(cells, frame.price), 3
    )
    rule = Difference(1.0)
    assert np.allclose(models.wrap(number, rule=rule).score(cells), number.inplace_predict(cells))
    quiet = {"verbose": -1, "num_leaves": 4}
    trees = lightgbm.train(
        {"objective": "regression", **quiet}, lightgbm.Dataset(cells, frame.price), 2
    )
    assert np.allclose(models.wrap(trees, rule=rule).score(cells), trees.predict(cells))
    with pytest.raises(GivesNumbers, match="returns numbers"):
        models.wrap(trees)
    fitted = xgboost.XGBRegressor(n_estimators=2).fit(frame[COLUMNS], frame.price)
    told = models.wrap(fitted, rule=rule).score(frame[COLUMNS])
    assert np.allclose(told, fitted.predict(frame[COLUMNS]))


def rule_of(text):
    rule = parse_rule(text)
    return replace(rule, labels=tuple(sorted(GRADES))) if isinstance(rule, Classes) else rule


def test_functions_that_answer_labels_are_read_as_classes(table):
    def label(frame):
        return np.array(GRADES)[np.digitize(quote(frame), [270, 310, 360])]

    by_label = find(label, table, "grade", decision="class")
    by_share = find(shares_of, table, "grade", decision="class")
    assert len(by_label.findings) == len(by_share.findings) > 0
    assert (by_label.findings["class"] == by_share.findings["class"]).all()

    def number(frame):
        return np.searchsorted(sorted(GRADES), label(frame))

    assert len(find(number, table, "grade", decision="class").findings) == len(by_label.findings)
    with pytest.raises(BadModel, match="answers 'gold' instead of"):
        find(lambda frame: ["gold"] * len(frame), table, "grade", decision="class")


def test_a_target_of_very_many_words_is_refused(table):
    with pytest.raises(BadTable, match="different values"):
        find(shares_of, table.assign(name=[f"p{i}" for i in range(len(table))]), "name")
