"""Rows that the model has not seen: where they are used, where not, and what does not fit."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import limi
from limi.audits.problem import prepare, with_held_out
from limi.errors import BadTable, InvalidInput
from limi.report import html, text


def people(n, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "sex": rng.choice(["F", "M"], n),
            "job": rng.choice(["clerk", "nurse", "smith"], n),
            "debt": rng.integers(0, 90, n),
        }
    )
    merit = frame.age / 20 - frame.debt / 30 + (frame.sex == "M") * 0.5 + rng.normal(0, 0.8, n)
    frame["ok"] = np.where(merit > 1, "yes", "no")
    return frame


TRAINED, NEW = people(1500, 0), people(1200, 1)
NEW = NEW[NEW.age.between(TRAINED.age.min(), TRAINED.age.max())]
coder = make_column_transformer((OneHotEncoder(), ["sex", "job"]), remainder="passthrough")
FOREST = make_pipeline(coder, RandomForestClassifier(20, random_state=0))
FOREST.fit(TRAINED.drop(columns="ok"), TRAINED["ok"])


def audit(**more):
    given = {"protected": ["sex"], "target": "ok", "favorable": "yes", "max_rows": 2000}
    given |= {"method": "natural", "rate_rows": 5000, "seed": 0}
    return limi.audit(FOREST, TRAINED, **given | more)


@pytest.fixture(scope="module")
def plain():
    return audit()


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    folder = tmp_path_factory.mktemp("held") / "run"
    return folder, audit(held_out=NEW, held_out_name="new.csv", out=folder)


def flips(frame):
    inputs = frame.drop(columns="ok")
    other = inputs.assign(sex=inputs["sex"].map({"F": "M", "M": "F"}))
    decided = [FOREST.predict_proba(rows)[:, 1] > 0.5 for rows in (inputs, other)]
    return decided[0] != decided[1]


def test_the_rate_of_people_comes_from_rows_the_model_has_not_seen(plain, held):
    rates = held[1].rates
    assert rates["held-out"].n == len(NEW)
    assert rates["held-out"].estimate == pytest.approx(flips(NEW).mean())
    assert plain.rates["real"].estimate == pytest.approx(flips(TRAINED).mean())
    assert rates["real"].reason == "held-out rows were given and measured instead"
    assert {name: rates[name] for name in ("natural", "uniform")} == {
        name: plain.rates[name] for name in ("natural", "uniform")
    }


def test_group_metrics_come_from_them_too(plain, held):
    counted = held[1].metrics()["group"]["sex"]
    assert counted["population"] == "held-out"
    assert plain.metrics()["group"]["sex"]["population"] == "real"
    decided = FOREST.predict(NEW.drop(columns="ok")) == "yes"
    for entry in counted["counts"]:
        mine = NEW["sex"] == entry["value"]
        assert entry["rows"] == mine.sum()
        assert entry["favorable"] == decided[mine].sum()
        assert entry["true_favorable"] == (decided & (NEW["ok"] == "yes"))[mine].sum()


def test_the_search_and_the_generator_never_see_them(plain, held):
    result = held[1]
    pd.testing.assert_frame_equal(result.findings, plain.findings)
    assert np.array_equal(result.problem.rows, plain.problem.rows)
    assert result.where() == plain.where()
    assert result.problem.hashes() == plain.problem.hashes()


def test_a_volume_of_people_is_told_by_them(held):
    people = held[1].metrics(volume=10_000)["severity"]["affected"]
    assert people["held-out"]["value"] == round(10_000 * flips(NEW).mean())


def test_text_page_and_json_name_them(plain, held):
    folder, result = held
    shown, page = " ".join(text.render(result.summary).split()), html.render(result.summary)
    assert "of held-out rows would be decided differently" in shown
    assert f"new.csv ({len(NEW):,} rows)" in shown
    assert f"{len(NEW):,} held-out rows." in shown
    assert "rows that the model has not seen, as you said" in shown
    assert "rows that the model has not seen, as you said" in page
    tree = json.loads((folder / "summary.json").read_text())
    assert (tree["held_out"], tree["n_held_out"]) == ("new.csv", len(NEW))
    assert len(tree["hashes"]["held_out_sha256"]) == 64
    unsaid = " ".join(text.render(plain.summary).split())
    words = "Whether the model was trained on the rows of your table is not known"
    assert words in unsaid
    assert "--held-out FILE" in unsaid
    assert words in html.render(plain.summary)
    assert words not in shown + page


def test_a_run_is_held_to_them_and_opens_with_them(held, tmp_path):
    folder, result = held
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["held_out"] == "new.csv"
    other = audit(held_out=NEW[:-1], held_out_name="new.csv")
    assert other.manifest["held_out_sha256"] != manifest["held_out_sha256"]
    assert other.manifest["config_sha256"] != manifest["config_sha256"]
    again = limi.reopen(folder, table=TRAINED, model=FOREST)
    assert again.rates == result.rates
    assert again.summary == result.summary

    def stop(progress):
        if progress.phase == "search":
            raise KeyboardInterrupt

    given = {"out": tmp_path / "run", "max_batch": 200}
    assert audit(held_out=NEW, **given, on_progress=stop).stop == "interrupted"
    with pytest.raises(InvalidInput, match="different settings, data or model"):
        audit(held_out=NEW[:-1], **given, resume=True)
    assert audit(held_out=NEW, **given, resume=True).rates == result.rates


def test_they_may_come_without_labels_in_another_order_and_another_library():
    given = pl.from_pandas(NEW.drop(columns="ok")[["debt", "job", "sex", "age"]])
    result = audit(held_out=given)
    assert result.rates["held-out"].estimate == pytest.approx(flips(NEW).mean())
    entry = result.metrics()["group"]["sex"]
    assert entry["average_odds_error"]["reason"] == "the table has no labels"
    assert entry["parity_gap"]["value"] is not None


def test_a_search_of_the_table_measures_both():
    result = audit(method="real", generator=None, held_out=NEW)
    assert set(result.rates) == {"held-out", "real", "uniform"}
    assert result.rates["real"].estimate == pytest.approx(flips(TRAINED).mean())


def test_a_few_rows_that_the_table_does_not_know_are_left_out_and_noted():
    few = NEW.reset_index(drop=True).astype({"debt": float})
    few.loc[3, "job"] = "pilot"
    few.loc[5, "age"] = 99
    few.loc[7, "debt"] = np.nan
    result = audit(held_out=few)
    kept = NEW.reset_index(drop=True).drop(index=[3, 5, 7])
    assert result.rates["held-out"].n == len(kept)
    assert result.rates["held-out"].estimate == pytest.approx(flips(kept).mean())
    assert result.summary.n_held_out == len(kept)
    (note,) = [note for note in result.summary.notes if "held-out" in note]
    assert note.startswith(f"3 of {len(few):,} held-out rows were left out")
    assert "column 'age' holds 99, outside its range" in note


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (NEW.drop(columns="job"), "lack the column 'job'"),
        (NEW[:0], "do not fit the table: there are none"),
        (NEW.assign(ok="maybe"), "target column 'ok' holds 'maybe', while the table's holds 'yes'"),
        (NEW.assign(job="pilot"), r"held-out rows \(new.csv\) do not fit the table: column 'job'"),
        (NEW.assign(age="old"), "do not fit the table: column 'age' is numerical in the schema"),
        ([1, 2], "a table was expected, not list"),
    ],
)
def test_rows_of_another_table_are_refused_in_one_sentence(frame, words):
    with pytest.raises(BadTable, match=words) as caught:
        audit(held_out=frame, held_out_name="new.csv")
    assert "\n" not in str(caught.value)


def test_a_note_says_for_each_column_how_many_rows_it_keeps_out():
    frame = pd.DataFrame({"age": [20, 30, 40, 50] * 50, "sex": ["f", "m"] * 100})
    frame["job"] = np.where(frame.age > 30, "nurse", "clerk")
    held = frame.copy()
    held.loc[[0, 1], "age"] = 90
    held.loc[[2, 3, 4], "job"] = "pilot"
    problem = prepare(
        lambda given: given["age"] > 30,
        frame,
        protected=["sex"],
        output="label",
        only=["age", "job", "sex"],
    )
    (note,) = [one for one in with_held_out(problem, held).notes if "left out" in one]
    assert "5 of 200" in note
    assert "2 in 'age'" in note
    assert "3 in 'job'" in note
    with pytest.raises(BadTable, match=r"^the held-out rows lack the column 'age'$"):
        with_held_out(problem, held.drop(columns="age"))
