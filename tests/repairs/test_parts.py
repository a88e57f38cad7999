"""The parts of a repair: labels, recipes, the ensemble, figures and the verdict."""

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, fisher_exact
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.tree import DecisionTreeClassifier

from limi import generators
from limi.audits.problem import prepare
from limi.errors import InvalidInput
from limi.repairs import _ensemble, _figures, _labels, _recipes, _verify
from limi.repairs._figures import Figure
from limi.repairs._refit import refit_of
from limi.search.check import check_rows
from limi.search.findings import Found
from tests.naive import repair as naive
from tests.toy import Linear, are_clear, grid, schema_of

SCHEMA = schema_of((0, 4), (0, 4), (0, 3), (0, 1), protected=["x2", "x3"])


def findings(schema, n, rng):
    rows = rng.integers(schema.low, schema.high + 1, (n, len(schema))).astype(float)
    partner = rows.copy()
    partner[:, schema.protected_index[0]] = (rows[:, schema.protected_index[0]] + 1) % 4
    zeros = np.zeros(n)
    return Found(rows, partner, zeros, zeros, np.full(n, ""), zeros, np.zeros(n, dtype=np.uint8))


weights = st.tuples(*(st.floats(-3, 3, allow_nan=False) for _ in range(4)))


@given(weights=weights, bias=st.floats(-5, 5), seed=st.integers(0, 2**20))
@settings(max_examples=30, deadline=None)
def test_vote_agrees_with_the_definition(weights, bias, seed):
    model = Linear(weights, bias)
    assume(are_clear(model.unchecked(grid(SCHEMA))))
    rng = np.random.default_rng(seed)
    rows = grid(SCHEMA)[rng.choice(200, 25, replace=False)]
    expected = [naive.vote(model.score, SCHEMA, row) for row in rows]
    assert _labels.vote(model.score, SCHEMA, rows).tolist() == expected


def test_vote_of_two_values_takes_the_side_of_the_mean_score():
    schema = schema_of((0, 9), (0, 1), protected=["x1"])
    scores = {0.0: 0.1, 1.0: 0.8}  # one decision each way; together they lie below one half
    rows = np.array([[3.0, 0.0], [4.0, 1.0]])
    low = _labels.vote(lambda r: np.array([scores[v] for v in r[:, 1]]), schema, rows)
    assert low.tolist() == [0, 0]
    high = _labels.vote(lambda r: np.array([scores[v] + 0.19 for v in r[:, 1]]), schema, rows)
    assert high.tolist() == [1, 1]
    assert len(_labels.vote(None, schema, rows[:0])) == 0


def test_privileged_and_drop_label_by_their_definition():
    schema = schema_of((0, 9), (0, 1), protected=["x1"])
    rows = np.array([[float(i), 0.0] for i in range(10)])
    score = Linear((0.0, 2.0), -1.0).score  # x1 alone decides

    class Blind:
        def decide(self, rows):
            return (rows[:, 0] > 4).astype(np.int8)

    given = {"ensemble": Blind, "privileged": {"x1": 1.0}}
    labels, kept = _labels.decide("privileged", score, schema, rows, **given)
    assert labels.tolist() == [1] * 10
    assert kept.all()
    labels, kept = _labels.decide("ensemble", score, schema, rows, **given)
    assert labels.tolist() == [0] * 5 + [1] * 5
    labels, kept = _labels.decide("drop", score, schema, rows, **given)
    # Scores of both sides mirror each other, so the mean is one half and the vote unfavorable.
    assert labels.tolist() == [0] * 10
    assert kept.tolist() == [True] * 5 + [False] * 5


@given(seed=st.integers(0, 2**20), recipe=st.sampled_from(sorted(_recipes.RECIPES)))
@settings(max_examples=40, deadline=None)
def test_recipes_add_rows_that_differ_in_protected_columns_alone(seed, recipe):
    rng = np.random.default_rng(seed)
    rows = rng.integers(SCHEMA.low, SCHEMA.high + 1, (30, 4)).astype(float)
    training = _recipes.Training(SCHEMA, rows, rng.integers(0, 2, 30).astype(np.int8))
    chosen = _recipes.Chosen(findings(SCHEMA, 12, rng), rng.integers(0, 2, 12).astype(np.int8))
    mixed, labels = _recipes.mix(recipe, training, chosen, rng)
    assert np.array_equal(mixed[:30], rows)
    assert np.array_equal(labels[:30], training.labels)
    free = SCHEMA.free_index
    known = {
        (tuple(row), label)
        for source, given in ((rows, training.labels), (chosen.found.rows, chosen.labels))
        for row, label in zip(source[:, free], given, strict=True)
    }
    assert all(
        (tuple(row), label) in known
        for row, label in zip(mixed[30:][:, free], labels[30:], strict=True)
    )
    assert (SCHEMA.combination_of(mixed) >= 0).all()


def test_sizes_of_the_recipes():
    rng = np.random.default_rng(0)
    rows = rng.integers(SCHEMA.low, SCHEMA.high + 1, (30, 4)).astype(float)
    training = _recipes.Training(SCHEMA, rows, np.zeros(30, dtype=np.int8))
    chosen = _recipes.Chosen(findings(SCHEMA, 12, rng), np.ones(12, dtype=np.int8))
    added = {
        name: len(_recipes.mix(name, training, chosen, np.random.default_rng(0))[0]) - 30
        for name in _recipes.RECIPES
    }
    assert added == {"alone": 12, "pairs": 24, "values": 48, "copies": 90, "copies+pairs": 114}


def test_copies_of_a_row_are_distinct_and_not_its_own():
    rng = np.random.default_rng(1)
    rows = np.repeat(np.array([[1.0, 2.0, 3.0, 1.0]]), 50, axis=0)
    training = _recipes.Training(SCHEMA, rows, np.ones(50, dtype=np.int8))
    nothing = _recipes.Chosen(findings(SCHEMA, 0, rng), np.zeros(0, dtype=np.int8))
    mixed, _ = _recipes.mix("copies", training, nothing, rng)
    for place in range(50):
        mine = SCHEMA.combination_of(mixed[place::50])
        assert len(set(mine.tolist())) == 4  # its own and three others


def test_findings_are_drawn_once_where_there_are_enough():
    found = findings(SCHEMA, 20, np.random.default_rng(0))
    rng = np.random.default_rng(0)
    assert sorted(_recipes.choose(found, 20, rng, replace=False)) == list(range(20))
    assert len(set(_recipes.choose(found, 20, rng, replace=True).tolist())) < 20
    assert len(_recipes.choose(found, 50, rng, replace=False)) == 50


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_ensemble_is_scikit_learn_s_soft_vote_without_protected_columns():
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import RandomForestClassifier, VotingClassifier
    from sklearn.model_selection import train_test_split
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    rng = np.random.default_rng(0)
    schema = schema_of((0, 9), (0, 9), (0, 1), protected=["x2"])
    rows = rng.integers(0, 10, (160, 3)).astype(float)
    rows[:, 2] %= 2
    labels = (rows[:, 0] + rows[:, 1] + rng.normal(0, 2, 160) > 9).astype(np.int8)
    made = _ensemble.fit(rows, labels, schema, blind_to={"x2"})
    seen, _, truth, _ = train_test_split(rows[:, :2], labels, train_size=0.6, random_state=42)
    scaling = StandardScaler().fit(seen)
    peer = VotingClassifier(
        [
            ("knn", KNeighborsClassifier(5)),
            ("mlp", MLPClassifier(random_state=42)),
            ("svm", CalibratedClassifierCV(SVC(random_state=42), ensemble=False)),
            ("forest", RandomForestClassifier(random_state=42)),
            ("bayes", GaussianNB()),
        ],
        voting="soft",
    ).fit(scaling.transform(seen), truth)
    expected = peer.predict_proba(scaling.transform(rows[:, :2]))[:, 1]
    assert np.allclose(made.score(rows), expected, atol=1e-9)
    other = rows.copy()
    other[:, 2] = 1 - other[:, 2]
    assert np.array_equal(made.decide(rows), made.decide(other))
    gaps = rows.copy()
    gaps[0, 0] = np.nan
    assert np.isfinite(made.score(gaps)).all()


def people(n=300, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "income": rng.integers(0, 10, n),
            "sex": rng.choice(["F", "M"], n),
            "age": rng.integers(20, 24, n),
        }
    )
    frame["ok"] = np.where(frame["income"] + 2 * (frame["sex"] == "M") > 5, "yes", "no")
    return frame


def problem(frame=None, protected=("sex",)):
    def model(frame):
        return 1 / (1 + np.exp(5.5 - frame["income"] - 2 * (frame["sex"] == "M")))

    given = people() if frame is None else frame
    return prepare(model, given, protected=list(protected), target="ok", favorable="yes")


def test_the_privileged_group_is_stated_or_said():
    one = problem()
    stated = _figures.groups(one, ["sex=F"])
    assert (stated.words, stated.reason) == ("sex=F", "as stated")
    unasked = _figures.groups(one)
    assert unasked.words == "sex=M"  # whom the model favors
    assert "not stated" in unasked.reason
    lowest = _figures.groups(problem(protected=["age", "sex"]), "lowest")
    assert lowest.words == "age=20"
    assert (
        _figures.groups(one, {"sex": "M"}).split(one.schema, one.rows)[0].sum()
        == (people()["sex"] == "M").sum()
    )
    for wrong, told in (
        (["sex"], "COLUMN=VALUE"),
        (["income=3"], "not a protected column"),
        (["sex=X"], "no value of column"),
    ):
        with pytest.raises(InvalidInput, match=told):
            _figures.groups(one, wrong)


def test_the_privileged_group_is_stated_as_for_metrics():
    one = problem(protected=["age", "sex"])
    assert _figures.groups(one, ["lowest"]).words == "age=20"
    young = _figures.groups(one, ["age=20-21"])
    assert young.split(one.schema, one.rows)[0].sum() == (people()["age"] <= 21).sum()
    several = _figures.groups(one, ["age=20,23", "sex=M"])
    inside = people()["age"].isin([20, 23]) & (people()["sex"] == "M")
    assert several.split(one.schema, one.rows)[0].sum() == inside.sum()
    assert _figures.groups(one, ["sex=M"]).codes(one.schema) == {"sex": 1.0}
    with pytest.raises(InvalidInput, match="one privileged value"):
        young.codes(one.schema)


def test_the_model_says_who_is_privileged_and_not_the_labels():
    frame = people()
    frame["ok"] = np.where(frame["sex"] == "F", "yes", "no")  # the model favors men
    assert _figures.groups(problem(frame)).words == "sex=M"


def test_a_number_of_many_values_is_cut_in_halves():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"income": rng.integers(0, 10, 4000), "age": rng.integers(20, 70, 4000)})
    frame["sex"] = np.where(frame["age"] >= 45, "M", "F")
    frame["ok"] = np.where(frame["income"] > 8, "yes", "no")
    middle = int(np.median(frame["age"]))
    assert _figures.groups(problem(frame, protected=["age"])).words == f"age={middle} or more"


class Anyone:
    """A generator of the table's own rows."""

    kind = "anyone"

    def __init__(self, rows):
        self.rows = rows

    def sample_latents(self, n, rng):
        return rng.integers(0, len(self.rows), n)

    def decode(self, latents):
        return self.rows[latents]


def test_figures_agree_with_a_count_by_hand():
    one = problem()
    stick = _figures.Yardstick.make(
        one, _figures.groups(one), Anyone(one.rows), 200, np.random.default_rng(0)
    )
    trained, held = np.arange(200), np.arange(200, 300)
    figures = stick.figures(one.target, trained, held, None)
    frame = people()
    decided = (frame["income"] + 2 * (frame["sex"] == "M") > 5.5).to_numpy()
    truth = (frame["ok"] == "yes").to_numpy()
    male = (frame["sex"] == "M").to_numpy()
    assert figures["accuracy"].value == (decided == truth)[200:].mean()
    assert figures["training_accuracy"].value == (decided == truth)[:200].mean()
    # Incomes 4 and 5 are decided by sex alone.
    for name in ("real", "uniform", "natural"):
        incomes = getattr(stick, name)[:, one.schema.position("income")]
        assert figures[name].value == np.isin(incomes, [4, 5]).mean()
    gap = abs(decided[200:][male[200:]].mean() - decided[200:][~male[200:]].mean())
    assert figures["spd"].value == pytest.approx(gap)
    assert figures["aod"].value == pytest.approx(
        naive.average_odds_gap(decided[200:], truth[200:], male[200:])
    )


def test_a_group_without_a_true_class_gets_a_reason_and_no_number():
    frame = people()
    frame.loc[frame["sex"] == "F", "ok"] = "no"
    one = problem(frame)
    stick = _figures.Yardstick.make(
        one, _figures.groups(one), Anyone(one.rows), 50, np.random.default_rng(0)
    )
    figures = stick.figures(one.target, np.arange(100), np.arange(100, 300), None)
    assert figures["aod"].value is None
    assert "the group of all others has no row whose true label is favorable" in (
        figures["aod"].reason
    )
    assert figures["spd"].value is not None
    joined = _figures.over_seeds([figures["aod"], Figure(0.1)])
    assert joined.value is None
    assert joined.reason == figures["aod"].reason


def test_intervals_over_seeds_are_student_s():
    values = [0.10, 0.14, 0.12]
    figure = _figures.over_seeds([Figure(v, v - 0.01, v + 0.01) for v in values])
    low, high = student.interval(
        0.95, 2, loc=np.mean(values), scale=np.std(values, ddof=1) / np.sqrt(3)
    )
    assert (figure.value, figure.low, figure.high) == pytest.approx((0.12, low, high))
    assert (figure.seeds, figure.interval) == (tuple(values), "seeds")
    alone = _figures.over_seeds([Figure(0.5, 0.4, 0.6)])
    assert (alone.low, alone.high) == (0.4, 0.6)


def test_zero_flips_over_seeds_show_the_bound_of_the_rows_asked():
    n = 20_000
    figure = _figures.over_seeds([_figures._rate(np.zeros(n, dtype=bool))] * 3)
    # The seeds ask the same rows, so three of them prove no more than one.
    exact = binomtest(0, n).proportion_ci(method="exact")
    assert (figure.value, figure.low) == (0.0, 0.0)
    assert figure.high == pytest.approx(exact.high)
    assert figure.interval == "rows"


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.2)), min_size=2, max_size=5))
def test_intervals_over_seeds_are_the_wider_of_two(seeds):
    each = [Figure(v, max(0.0, v - half), min(1.0, v + half)) for v, half in seeds]
    joined = _figures.over_seeds(each)
    values = np.array([f.value for f in each])
    half = student.ppf(0.975, len(each) - 1) * values.std(ddof=1) / np.sqrt(len(each))
    by_seeds = (max(0.0, values.mean() - half), min(1.0, values.mean() + half))
    by_rows = tuple(np.mean([getattr(f, end) for f in each]) for end in ("low", "high"))
    wider = max(by_seeds, by_rows, key=lambda ends: ends[1] - ends[0])
    assert joined.high - joined.low == pytest.approx(wider[1] - wider[0], abs=1e-12)
    assert joined.low - 1e-12 <= joined.value <= joined.high + 1e-12


def check(before, after, rows=1000):
    return _verify.Check("people", "fresh people", rows, before, after)


def loss(before, after, n=200):
    """Of n rows, where those that become wrong are the only ones that change."""
    right, later = (np.arange(n) < round(share * n) for share in (before, after))
    return _verify.Loss.of(right, later, "held-out")


def test_loss_is_the_mean_of_paired_differences():
    right = np.array([1, 1, 1, 0, 0, 1, 1, 1]) > 0
    later = np.array([1, 0, 0, 1, 0, 1, 1, 1]) > 0
    lost = _verify.Loss.of(right, later, "held-out")
    each = right.astype(int) - later
    assert lost.value == pytest.approx(each.mean())
    assert lost.high - lost.value == pytest.approx(1.96 * each.std() / np.sqrt(8))
    assert lost.as_dict()["on"] == "held-out"


def test_rows_that_several_seeds_ask_are_no_more_rows():
    rng = np.random.default_rng(0)
    right, later = rng.random(400) < 0.9, rng.random(400) < 0.8
    once = _verify.Loss.of(right, later, "held-out")
    places = np.tile(np.arange(400), 3)
    thrice = _verify.Loss.of(np.tile(right, 3), np.tile(later, 3), "held-out", places)
    assert (thrice.value, thrice.low, thrice.high) == pytest.approx(
        (once.value, once.low, once.high)
    )


def test_the_same_rows_before_and_after_are_a_paired_test():
    schema = schema_of((0, 99), (0, 1), protected=["x1"])
    rows = np.stack([np.arange(100.0), np.zeros(100)], axis=1)

    class Asked:
        """Flips where the first column is under a limit."""

        def __init__(self, limit):
            self.limit = limit

        def score(self, rows):
            return np.where((rows[:, 0] < self.limit) & (rows[:, 1] > 0), 0.9, 0.1)

    made = _verify.asked("people", "fresh people", schema, rows, Asked(12), Asked(5))
    assert (made.before, made.after, made.gone, made.new) == (12, 5, 7, 0)
    assert made.p_value == pytest.approx(binomtest(7, 7).pvalue)
    assert made.better  # though two samples with 12 and 5 flips might well be alike
    assert fisher_exact([[12, 88], [5, 95]])[1] > 0.05


def figures(accuracy, flips):
    return {
        "accuracy": Figure(accuracy),
        "training_accuracy": Figure(accuracy),
        "real": Figure(flips),
        "natural": Figure(flips),
    }


@pytest.mark.parametrize(
    ("checks", "own", "before", "after", "word", "told"),
    [
        ([check(100, 10)], (50, 5), (0.9, 0.1), (0.895, 0.01), "reduced", "reduced by 90 %: "),
        ([check(1000, 999, 10**5)], (50, 5), (0.9, 0.1), (0.9, 0.01), "unchanged", "generalise"),
        ([check(120, 29)], (50, 5), (0.9, 0.1), (0.9, 0.01), "reduced", "reduced by 75 %: "),
        ([check(100, 0, 10**4)], (50, 5), (0.9, 0.1), (0.9, 0.0), "removed", "at most 0.037 %"),
        ([check(100, 1, 10**3)], (50, 5), (0.9, 0.1), (0.9, 0.0), "reduced", "reduced by 99 %"),
        ([check(100, 10)], (50, 5), (0.9, 0.1), (0.84, 0.01), "too costly", "falls by 6.00"),
        ([check(100, 10)], (50, 5), (0.9, 0.1), (0.88, 0.01), "inconclusive", "may be chance"),
        ([check(100, 98)], (50, 0), (0.9, 0.1), (0.9, 0.1), "unchanged", "not generalise"),
        ([check(100, 98)], (50, 49), (0.9, 0.1), (0.9, 0.1), "unchanged", "not rarer"),
        ([check(10, 90)], (50, 0), (0.9, 0.1), (0.9, 0.1), "worse", "1.00 % before, 9.00 %"),
        (
            [check(100, 10), check(10, 8)],
            (50, 0),
            (0.9, 0.1),
            (0.9, 0.01),
            "inconclusive",
            "not every fresh check",
        ),
        ([check(0, 0)], (50, 0), (0.9, 0.1), (0.9, 0.1), "inconclusive", "no flips before"),
        ([check(0, 90)], (50, 0), (0.9, 0.1), (0.9, 0.1), "worse", "0.00 % before, 9.00 %"),
        ([check(100, 10)], (50, 0), (0.9, 0.1), (0.9, 0.1), "inconclusive", "over the seeds"),
    ],
)
def test_verdicts(checks, own, before, after, word, told):
    verdict = _verify.judge(
        checks,
        check(*own, rows=50),
        loss(before[0], after[0]),
        figures(*before),
        figures(*after),
        max_accuracy_loss=0.01,
    )
    assert verdict.word == word
    assert told in str(verdict)
    assert str(verdict).startswith(word)


def test_a_missing_protected_cell_belongs_to_no_group():
    one = problem()
    rows = one.rows[:6].copy()
    rows[:2, one.schema.position("sex")] = np.nan
    inside, outside = _figures.groups(one, {"sex": "M"}).split(one.schema, rows)
    assert not (inside | outside)[:2].any()
    assert (inside ^ outside)[2:].all()


def test_a_blinded_model_cannot_flip():
    one = problem()
    cells = _figures.Blinded.usual(one.schema, one.rows)
    blind = _figures.Blinded(one.target, one.schema, cells)
    assert not check_rows(blind.score, one.schema, one.rows).flips.any()
    same = (one.rows[:, one.schema.protected_index] == cells).all(axis=1)
    assert same.mean() >= 0.5 / len(one.schema.combinations)
    np.testing.assert_array_equal(blind.score(one.rows)[same], one.target.score(one.rows[same]))


def test_checks_are_fisher_s():
    one = check(30, 12)
    assert one.p_value == pytest.approx(fisher_exact([[30, 970], [12, 988]])[1])
    assert one.better
    assert not one.worse
    assert one.reduction == pytest.approx(0.6)
    assert check(0, 3).reduction is None


def test_fresh_means_another():
    for used in ("limi", "guided", "limi+adf", "aequitas", "themis", "limi+aequitas"):
        assert _verify.fresh_method(used) not in used.split("+")
    assert _verify.fresh_generator("trees") == "transport"
    assert _verify.fresh_generator("transport") == "trees"
    assert _verify.fresh_generator(None) in ("trees", "transport")


def test_without_torch_the_generator_is_another_seed_of_trees(monkeypatch):
    monkeypatch.setattr(_verify, "find_spec", lambda name: None)
    assert _verify.fresh_generator("trees") == "trees"


def test_a_saved_generator_counts_by_its_kind(tmp_path):
    one = problem()
    made = generators.get("trees").fit(one.rows, one.schema, np.random.default_rng(0))
    path = str(tmp_path / "mine.limi")
    generators.save(made, path)
    assert _verify.kind_of(path) == "trees"
    assert _verify.kind_of("ctgan") == "ctgan"
    beside = _verify.Fresh.beside("limi", path, 3)
    assert (beside.generator, beside.other_generator) == (_verify.fresh_generator("trees"), True)
    assert (beside.method, beside.seed) == ("guided", 3 + _verify.FRESH_SEED)
    # Of a file that is gone nobody knows the kind.
    assert not _verify.Fresh.beside("limi", str(tmp_path / "gone.limi"), 3).other_generator


class Bomb:
    """Writes a file where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_training_again_opens_no_cache_that_the_model_names(tmp_path):
    cache, owned = tmp_path / "cache", tmp_path / "owned"
    frame = people()
    steps = [("code", OrdinalEncoder()), ("decide", DecisionTreeClassifier(max_depth=2))]
    model = Pipeline([("inner", Pipeline(steps, memory=str(cache)))])
    model.fit(frame.drop(columns="ok"), frame["ok"])
    given = prepare(model, frame, protected=["sex"], target="ok", favorable="yes")
    # Just what training again would ask the cache for; then each answer is planted.
    spelled = np.array(["no", "yes"], dtype=model.classes_.dtype)[given.labels]
    clone(model).fit(given.target.present(given.rows), spelled)
    planted = list(cache.rglob("output.pkl"))
    for file in planted:
        file.write_bytes(pickle.dumps(Bomb(owned)))
    assert planted
    refit_of(given)(given.rows, given.labels, 0)
    assert not owned.exists()
