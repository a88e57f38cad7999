"""Two models on the same people, whose rates are known for every age."""

import json
from html import escape as html_words

import numpy as np
import pytest

import limi
from limi.changes import GONE, SAME
from limi.errors import BadModel, InvalidInput
from limi.report import changes as page
from limi.system.shown import to_json
from tests.changes.small import by_sex, people

OPTIONS = {
    "protected": ["sex"],
    "target": "ok",
    "favorable": "yes",
    "output": "score",
    "method": "real",
    "rate_rows": 300,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A model that decides by sex under 20, and one that does so under 5."""
    folder = tmp_path_factory.mktemp("diff")
    limi.audit(by_sex(20), people(), out=folder / "before", **OPTIONS)
    limi.audit(by_sex(5), people(), out=folder / "after", seed=3, **OPTIONS)
    return folder / "before", folder / "after"


def ask(runs, after=None, **more):
    more = {
        "model": after or by_sex(5),
        "before_model": by_sex(20),
        "table": people(),
        "rows": 300,
    } | more
    return limi.diff(runs[0], **more)


@pytest.fixture(scope="module")
def told(runs):
    return ask(runs)


def test_both_models_are_asked_the_rows_that_the_run_measured(runs, told):
    summary = limi.reopen(runs[0], table=people(), model=by_sex(20)).summary
    assert [one.name for one in told.populations] == ["natural", "real"]
    assert told.populations[0].change.before == summary.rates["natural"]
    for one in told.populations:
        assert one.change.n == 300
        assert one.change.new == 0
        assert one.change.word == "better"
        assert one.change.after.estimate < one.change.before.estimate


def test_what_changed_is_counted_person_by_person(told):
    real = told.populations[1].change
    frame = people()
    # All 400 people are more than the 300 that were asked, so their shares are near.
    assert real.before.estimate == pytest.approx((frame["age"] < 20).mean(), abs=0.06)
    assert real.gone == round((real.before.estimate - real.after.estimate) * 300)


def test_the_region_of_those_who_no_longer_flip_is_found(told):
    assert [one.change.word for one in told.regions.changed] == ["better"]
    region = told.regions.changed[0].region
    (condition,) = region.conditions
    assert (condition.column.name, condition.high) == ("age", 19)


def test_old_findings_are_asked_of_the_newer_model(told):
    ages = told.replayed.found["age"]
    assert told.replayed.counts[SAME] == int((ages < 5).sum())
    assert told.replayed.counts[GONE] == int((ages >= 5).sum())
    assert told.replayed_back is None


def test_two_runs_are_compared_both_ways(runs):
    told = limi.diff(*runs, model=by_sex(5), before_model=by_sex(20), table=people(), rows=200)
    assert told.after == str(runs[1])
    back = told.replayed_back
    assert back.counts[SAME] == len(back)
    words = f"{len(back)} flip under the earlier model too and 0 are new."
    assert page.sentence(back, back=True).endswith(words)
    assert words in page.render(told)
    assert told.seed == 0  # the earlier run's


def test_a_model_and_itself_differ_in_nothing(runs):
    told = ask(runs, by_sex(20))
    for one in told.populations:
        assert (one.change.gone, one.change.new, one.change.word) == (0, 0, "no difference shown")
        assert one.decided_otherwise == 0
    assert not told.regions.changed
    assert told.replayed.counts[SAME] == len(told.replayed)


def test_a_model_that_got_worse_is_called_so(runs):
    told = ask(runs, by_sex(39))
    assert {one.change.word for one in told.populations} == {"worse"}
    assert page.headline(told).startswith("Worse: ")


def test_columns_may_be_renamed_and_added(runs):
    newer = people().rename(columns={"sex": "gender"}).assign(tenure=np.arange(400) % 5)
    told = ask(
        runs,
        by_sex(5, sex="gender"),
        table=newer,
        rename={"sex": "gender"},
        fill={"tenure": 1},
        generator=None,
    )
    (real,) = told.populations
    assert real.change.word == "better"
    assert told.protected == {"gender": ["f", "m"]}
    assert told.replayed.counts[SAME] == int((told.replayed.found["age"] < 5).sum())


def test_another_model_than_the_run_tested_is_refused(untried, tmp_path):
    import skops.io
    from sklearn.linear_model import LogisticRegression

    frame = people(80)
    frame["sex"] = (frame["sex"] == "m").astype(int)
    frame["ok"] = (frame["ok"] == "yes").astype(int)
    frame = frame.drop(columns="job")
    features = frame[["age", "sex"]].to_numpy()
    paths = []
    for place, strength in enumerate((1.0, 0.01)):
        fitted = LogisticRegression(C=strength).fit(features, frame["ok"])
        path = tmp_path / f"{place}.skops"
        skops.io.dump(fitted, path)
        paths.append(f"skops:{path}")
    options = OPTIONS | {"favorable": 1, "output": None, "generator": None, "rate_rows": 50}
    limi.audit(paths[0], frame, out=tmp_path / "run", **options)
    with pytest.raises(BadModel, match=r"is not the one that the run .* before.*KIND:PLACE"):
        limi.diff(tmp_path / "run", model=paths[1], before_model=paths[1], table=frame)
    told = limi.diff(tmp_path / "run", model=paths[1], before_model=paths[0], table=frame, rows=50)
    assert told.models == tuple(paths)


def test_an_earlier_model_that_answers_otherwise_than_in_the_run_is_refused(runs, tmp_path):
    """A live function has no sum, and two functions of one file have the same."""
    with pytest.raises(
        BadModel, match=r"gives answers that differ from those in the run .* before.*KIND:PLACE"
    ):
        ask(runs, before_model=by_sex(30, favors="f"))
    newer = people().assign(tenure=np.arange(400) % 5)
    with pytest.raises(BadModel, match="gives answers that differ from those in the run"):
        ask(runs, before_model=by_sex(5), table=newer, generator=None)
    path = tmp_path / "two.py"
    path.write_text(
        "def old(frame):\n    return (frame['sex'] == 'm') * 0.6 + 0.2\n"
        "def other(frame):\n    return (frame['sex'] == 'f') * 0.6 + 0.2\n"
    )
    options = OPTIONS | {"generator": None, "rate_rows": 50, "trust_pickle": True}
    limi.audit(f"python:{path}:old", people(60), out=tmp_path / "run", **options)
    more = {"table": people(60), "rows": 50, "trust_pickle": True, "model": by_sex(5)}
    with pytest.raises(
        BadModel, match=r"two.py:other' gives answers that differ from those in the run"
    ):
        limi.diff(tmp_path / "run", before_model=f"python:{path}:other", **more)
    told = limi.diff(tmp_path / "run", before_model=f"python:{path}:old", **more)
    assert told.populations[0].change.before.estimate == 1.0


def test_a_table_without_a_column_that_the_earlier_model_needs_is_told_so(runs):
    def ageless(frame):
        return (frame["sex"] == "m") * 0.6 + 0.2

    with pytest.raises(BadModel, match=r"has no age, which .* tested; leave table out") as told:
        ask(runs, ageless, table=people().drop(columns="age"))
    assert "KeyError" not in str(told.value)


def test_bad_words_are_refused(runs):
    with pytest.raises(InvalidInput, match="nothing to compare the run with"):
        limi.diff(runs[0])
    with pytest.raises(InvalidInput, match="rows is 0"):
        ask(runs, rows=0)
    with pytest.raises(InvalidInput, match=r"given in memory.*before.*KIND:PLACE"):
        limi.diff(runs[0], model=by_sex(5), table=people())


def test_the_same_diff_has_the_same_numbers_and_the_same_page(runs, told):
    again = ask(runs)
    assert to_json(again.as_dict()) == to_json(told.as_dict())
    assert page.render(again) == page.render(told)
    assert json.loads(to_json(told.as_dict()))["rates"][0]["verdict"] == "better"


def test_the_page_shows_both_models_and_runs_nothing(told):
    html = page.render(told)
    assert "<script" not in html
    assert html.count("<svg") >= 5
    assert "Findings of the earlier run, asked of the newer model" in html
    assert html_words(page.headline(told)) in html
    for name in told.models:
        assert name in html


def test_names_from_data_reach_the_page_and_the_lines_harmless(tmp_path):
    evil = 'job"><script>\x1b[31m'
    frame = people(120).rename(columns={"job": evil})
    options = OPTIONS | {"generator": None, "rate_rows": 50}
    limi.audit(by_sex(20), frame, out=tmp_path / "run", **options)
    told = limi.diff(
        tmp_path / "run", model=by_sex(5), before_model=by_sex(20), table=frame, rows=50
    )
    html = page.render(told)
    assert "<script" not in html
    assert "\x1b" not in html
    lines = [*page.shown_examples(told.replayed), page.sentence(told.replayed)]
    assert "\x1b" not in "".join(lines)
