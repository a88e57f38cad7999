"""Old findings put to a newer model, whose verdicts are known for every age."""

import numpy as np
import pandas as pd
import pytest

import limi
from limi.changes import GONE, SAME, TURNED, UNASKED
from limi.errors import BadModel, BadTable, InvalidInput
from limi.report import changes as page
from tests.changes.small import by_sex, by_sex_or_race, people, people_of_two_kinds

TERMS = {"target": "ok", "favorable": "yes", "output": "score"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Everybody under 20 flips, and no one else."""
    folder = tmp_path_factory.mktemp("replay") / "run"
    limi.audit(
        by_sex(20),
        people(),
        protected=["sex"],
        generator=None,
        method="real",
        rate_rows=0,
        out=folder,
        **TERMS,
    )
    return folder


def naive(frame, model):
    """What became of each finding, person by person."""
    told = []
    for _, row in frame.iterrows():
        one = pd.DataFrame([row])
        other = one.assign(sex=row["sex__partner"])
        mine, partner = float(model(one)[0]), float(model(other)[0])
        if (mine > 0.5) == (partner > 0.5):
            told.append(GONE)
        else:
            told.append(SAME if (mine > 0.5) == (row["score"] > 0.5) else TURNED)
    return told


@pytest.mark.parametrize(
    "newer", [by_sex(20), by_sex(10), by_sex(0), by_sex(10, favors="f")], ids=range(4)
)
def test_every_finding_is_told_as_asking_it_alone_would_tell(run, newer):
    told = limi.replay(run, newer, table=people(), output="score")
    frame = told.findings
    assert len(frame) > 20
    assert frame["outcome"].tolist() == naive(frame, newer)
    assert sum(told.counts.values()) == len(told)
    scores = newer(frame)
    assert np.array_equal(frame["new_score"], scores)
    assert np.array_equal(frame["score"], by_sex(20)(frame))


def test_a_model_that_favors_the_others_turns_the_direction(run):
    told = limi.replay(run, by_sex(10, favors="f"), table=people())
    young = told.found["age"] < 10
    assert told.counts == {SAME: 0, TURNED: int(young.sum()), GONE: int((~young).sum()), UNASKED: 0}
    assert told.gaps[0] == pytest.approx(0.5)
    outcomes = {one.outcome for one in told.examples}
    assert outcomes == {TURNED, GONE}
    assert {name for one in told.examples for name, *_ in one.changed} == {"sex"}


def test_renamed_columns_are_found_under_their_new_names(run):
    newer = people().rename(columns={"sex": "gender", "age": "years"})
    told = limi.replay(
        run,
        by_sex(10, age="years", sex="gender"),
        table=newer,
        rename={"sex": "gender", "age": "years"},
    )
    assert told.counts[SAME] == int((told.found["age"] < 10).sum())
    assert told.counts[UNASKED] == 0
    assert dict(told.renamed) == {"sex": "gender", "age": "years"}


def test_a_column_that_was_added_needs_a_value_and_takes_it(run):
    newer = people().assign(tenure=np.arange(400) % 7)

    def score(frame):
        return np.where(frame["tenure"] == 3, by_sex(10)(frame), 0.2)

    with pytest.raises(BadTable, match=r"none of the .* have no 'tenure'.*fill.*tenure=VALUE"):
        limi.replay(run, score, table=newer)
    told = limi.replay(run, score, table=newer, fill={"tenure": 3})
    assert told.counts[SAME] == int((told.found["age"] < 10).sum())
    assert told.added == ("tenure",)
    assert limi.replay(run, score, table=newer, fill=["tenure=4"]).counts[SAME] == 0


def test_a_column_that_was_dropped_is_told_and_costs_nothing(run):
    told = limi.replay(run, by_sex(10), table=people().drop(columns="job"))
    assert told.dropped == ("job",)
    assert told.counts[UNASKED] == 0
    assert told.counts[SAME] == int((told.found["age"] < 10).sum())


def test_people_whom_the_newer_table_does_not_know_are_not_asked(run):
    frame = people()
    newer = frame[frame["job"] != "smith"]
    told = limi.replay(run, by_sex(10), table=newer)
    assert told.counts[UNASKED] == 0  # the run's own schema still holds, and fits the table

    strange = newer.assign(job=newer["job"].map({"clerk": "a", "nurse": "nurse"}))
    told = limi.replay(run, by_sex(10), table=strange)
    nurses = told.found["job"] == "nurse"
    assert told.counts[UNASKED] == int((~nurses).sum())
    assert np.isnan(told.new_score[~nurses]).all()
    (why, n), *_ = told.unasked.items()
    assert n
    assert "column 'job' holds" in why


def test_a_table_without_the_protected_column_is_refused_in_a_sentence(run):
    with pytest.raises(BadTable, match=r"none of the protected columns of the run \(sex\).*rename"):
        limi.replay(run, lambda frame: np.full(len(frame), 0.2), table=people().drop(columns="sex"))


@pytest.fixture(scope="module")
def two_kinds(tmp_path_factory):
    """A run whose findings are flipped by sex alone, or by race alone."""
    folder = tmp_path_factory.mktemp("two") / "run"
    limi.audit(
        by_sex_or_race,
        people_of_two_kinds(),
        protected=["race", "sex"],
        generator=None,
        method="real",
        rate_rows=0,
        out=folder,
        **TERMS,
    )
    return folder


def test_an_example_names_the_column_that_flipped_it_first(two_kinds):
    told = limi.replay(two_kinds, by_sex_or_race, table=people_of_two_kinds())
    assert {one.flipped_by for one in told.examples} <= {"sex", "race"}
    for one in told.examples:
        age = int(dict(one.others)["age"])
        cause = "sex" if age < 20 else "race"
        assert (one.flipped_by, one.changed[0][0]) == (cause, cause)
        assert f"(by {cause} in the run)" in page.example(told, one)
        assert one.as_dict()["flipped_by"] == cause


def test_a_protected_column_under_another_name_is_asked_for_by_that_name_first(two_kinds):
    newer = people_of_two_kinds().rename(columns={"race": "origin"})
    with pytest.raises(BadTable, match=r"rename='race=origin'.*fill='origin=VALUE'"):
        limi.replay(two_kinds, by_sex(20), table=newer)


def test_findings_whose_cause_is_gone_from_the_table_are_not_asked(two_kinds):
    newer = people_of_two_kinds().drop(columns="race")
    told = limi.replay(two_kinds, by_sex(20), table=newer)
    by_race = (told.found["flipped_by"] == "race").to_numpy()
    assert 0 < by_race.sum() < len(told)
    assert ((told.outcome == UNASKED) == by_race).all()
    # Where the two differ in race alone, nothing at all is left to tell them apart.
    assert {why.split(" ")[0] for why in told.unasked} == {"they", "the"}
    assert any("they flipped because of race" in why for why in told.unasked)
    assert told.counts[GONE] == 0


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"rename": {"height": "x"}}, "the run has no column 'height' to rename"),
        ({"rename": {"age": "x"}}, "'age' is renamed to 'x', but the table has no"),
        ({"rename": ["age"]}, "rename is 'age'; write rename='OLD=NEW'"),
        ({"rename": ["age=job", "age=sex"]}, "rename names 'age' twice"),
        ({"rename": {"age": "job", "sex": "job"}}, "two columns of the run are renamed to one"),
        ({"fill": {"x": 1}}, "fill gives a value for 'x', but the table has no such column"),
    ],
)
def test_names_of_neither_table_are_refused(run, more, says):
    with pytest.raises(InvalidInput, match=says):
        limi.replay(run, by_sex(10), table=people(), **more)


def test_a_model_that_wants_other_columns_is_told_where_to_look(run):
    def broken(frame):
        return frame["height"]

    with pytest.raises(BadModel, match=r"the model cannot be asked.*table.*FILE"):
        limi.replay(run, broken, table=people())


def test_another_threshold_is_another_decision(run):
    told = limi.replay(run, by_sex(20), table=people(), decision="score > 0.25")
    assert told.counts[GONE] == len(told)


def test_the_same_question_gets_the_same_answer_and_is_json(run):
    import json

    from limi.system.shown import to_json

    one, two = (limi.replay(run, by_sex(5), table=people()).as_dict() for _ in range(2))
    assert json.loads(to_json(one)) == json.loads(to_json(two))
    assert one["findings"] == sum(one["outcomes"].values())


def test_a_model_of_chance_flips_nobody_for_sure(run):
    rng = np.random.default_rng(0)

    def noisy(frame):
        return rng.random(len(frame))

    told = limi.replay(run, noisy, table=people())
    assert told.counts[GONE] == len(told)
    assert any("only flips that were seen every time count" in note for note in told.notes)


def test_a_run_without_findings_has_nothing_to_ask(tmp_path):
    frame = people(60)
    options = {"protected": ["sex"], "generator": None, "method": "real", "rate_rows": 0, **TERMS}
    limi.audit(by_sex(0), frame, out=tmp_path / "run", **options)
    told = limi.replay(tmp_path / "run", by_sex(10), table=frame)
    assert len(told) == 0
    assert told.unasked == {}


def test_a_function_before_and_an_estimator_now_are_both_read_as_they_mean_it(run):
    from sklearn.linear_model import LogisticRegression

    frame = people()
    young = LogisticRegression(C=1e6).fit(frame[["age"]], np.where(frame["age"] < 20, "yes", "no"))
    told = limi.replay(run, young, table=frame)
    assert told.counts[GONE] == len(told)
    assert any("does not take sex" in note for note in told.notes)


def test_columns_kept_from_the_model_are_kept_from_the_newer_one(tmp_path):
    """A function is given every column that nobody names; the run's user named some that it is
    not given, and neither is the model that comes after it."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "u": rng.integers(0, 100, 200),
            "sex": rng.choice(["f", "m"], 200),
            "secret": rng.integers(0, 9, 200),
            "note": rng.choice(["a", "b"], 200),
        }
    )
    seen = set()

    def model(given):
        seen.update(given.columns)
        return np.where((given["u"] < 50) & (given["sex"] == "m"), 0.8, 0.2)

    frame.to_csv(tmp_path / "table.csv", index=False)
    asked = {"protected": ["sex"], "output": "score", "generator": None}
    asked |= {"drop": ["secret", "note"], "method": "real", "rate_rows": 50, "redact": False}
    folder = tmp_path / "run"
    result = limi.audit(model, frame, **asked, out=folder, table_name="table.csv")
    again = {"model": model, "before_model": model, "table": tmp_path / "table.csv", "rows": 50}
    for run in (result, folder):
        limi.replay(run, model, table=tmp_path / "table.csv")
        limi.diff(run, **again)
    limi.replay(result, model)
    assert seen == {"u", "sex"}
    limi.replay(result, model, table=tmp_path / "table.csv", drop="secret", fill={"note": "a"})
    assert seen == {"u", "sex", "note"}


def test_a_result_and_its_folder_give_the_same_answers(run):
    result = limi.reopen(run, table=people(), model=by_sex(20))
    both = []
    for given in (result, run):
        told = limi.replay(given, by_sex(10), table=people())
        changed = limi.diff(
            given, model=by_sex(10), before_model=by_sex(20), table=people(), rows=100
        )
        trees = told.as_dict(), changed.as_dict()
        named = ("run", "before", "findings_before", "model_before", "models")
        both.append([{k: v for k, v in tree.items() if k not in named} for tree in trees])
        pd.testing.assert_frame_equal(
            told.findings, limi.replay(run, by_sex(10), table=people()).findings
        )
    assert both[0] == both[1]
