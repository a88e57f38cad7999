"""One call, from a model and a table to findings, rates, files and a report."""

import json
import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import limi
from limi.audits.problem import prepare
from limi.audits.run_folder import read_summary
from limi.errors import BadModel, BadTable, CorruptStore, InvalidInput, LimiError


def people(n=600, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "sex": rng.choice(["F", "M"], n),
            "job": pd.Categorical(rng.choice(["a", "b", "c"], n)),
            "income": np.where(rng.random(n) < 0.1, np.nan, rng.normal(3, 1, n).round(2)),
            "vip": rng.random(n) < 0.2,
        }
    )
    merit = frame.age / 40 + (frame.sex == "M") * 0.7 + frame.income.fillna(3) / 3
    frame["ok"] = np.where(merit + rng.normal(0, 0.5, n) > 2.6, "yes", "no")
    return frame


def pipeline(frame):
    text = make_pipeline(OneHotEncoder(handle_unknown="ignore"))
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = make_column_transformer((text, ["sex", "job"]), (numbers, ["age", "income"]))
    return make_pipeline(columns, LogisticRegression()).fit(frame.drop(columns="ok"), frame["ok"])


FRAME = people()
MODEL = pipeline(FRAME)


def audit(model=MODEL, frame=FRAME, **more):
    given = {"protected": ["sex"], "target": "ok", "favorable": "yes", "rate_rows": 500}
    given |= {"method": "real", "generator": None, **more}
    return limi.audit(model, frame, **given)


def test_findings_flip_when_the_user_asks_the_model():
    found = audit().findings
    assert list(found.columns) == [
        *("age", "sex", "job", "income", "vip"),
        *("sex__partner", "score", "partner_score", "origin"),
        *("severity", "naturalness", "partner_naturalness"),
    ]
    features = FRAME.columns.drop("ok")
    partner = found[features].assign(sex=found["sex__partner"])
    assert (MODEL.predict(found[features]) != MODEL.predict(partner)).all()
    np.testing.assert_allclose(found["score"], MODEL.predict_proba(found[features])[:, 1])
    assert found.dtypes[features].equals(FRAME.dtypes[features])
    assert len(found) > 20


def test_real_findings_are_the_flipping_rows_of_the_table():
    result = audit()
    features = FRAME.drop(columns="ok")
    twin = features.assign(sex=np.where(features.sex == "M", "F", "M"))
    flips = MODEL.predict(features) != MODEL.predict(twin)
    assert result.rates["real"].estimate == pytest.approx(flips.mean())
    assert result.rates["real"].n == len(FRAME)
    distinct = features[flips].drop(columns="sex").drop_duplicates()
    assert result.summary.findings == len(distinct)


def test_rates_name_their_population_and_carry_intervals():
    for method in ("real", "themis"):
        rates = audit(method=method, max_rows=1_000).rates
        assert set(rates) == {"real", "uniform"}
        for rate in rates.values():
            assert 0 <= rate.low <= rate.estimate <= rate.high <= 1
            assert rate.n > 0


def test_by_default_limi_searches_among_natural_rows():
    result = limi.audit(
        MODEL, FRAME, protected=["sex"], target="ok", favorable="yes", max_rows=3_000
    )
    assert result.summary.method == "limi"
    assert result.summary.generator == "trees"
    assert set(result.rates) == {"real", "uniform", "natural"}
    gap = abs(result.rates["natural"].estimate - result.rates["real"].estimate)
    assert gap < 0.1
    assert result.summary.scores["boundary_auc_entire"] > 0.75
    assert result.summary.findings > 300


def test_a_query_budget_is_spent_by_the_guided_search():
    result = limi.audit(
        MODEL, FRAME, protected=["sex"], target="ok", favorable="yes", max_queries=1_000
    )
    assert result.summary.method == "guided"
    assert 500 < result.summary.queries <= 1_000


def by_job(frame):
    """Flips with sex for the young, with job for the others."""
    young = frame["age"] < 30
    side = np.where(young, frame["sex"] == "M", frame["job"] == "b")
    return 0.3 + 0.4 * side


def test_few_queries_say_how_partners_were_chosen():
    told = {
        (protected, limit): any("first protected value" in note for note in result.summary.notes)
        for protected in ("sex", "job")
        for limit in ("max_queries", "max_rows")
        for result in [audit(by_job, protected=[protected], **{limit: 600})]
    }
    # Two values leave no choice, and without a limit of queries all are asked.
    assert told == {
        ("sex", "max_queries"): False,
        ("sex", "max_rows"): False,
        ("job", "max_queries"): True,
        ("job", "max_rows"): False,
    }


def test_a_generator_can_be_an_object_or_a_file_and_must_fit(tmp_path):
    rng = np.random.default_rng(0)
    problem = prepare(MODEL, FRAME, protected=["sex"], target="ok", favorable="yes")
    fitted = limi.generators.get("trees").fit(problem.rows, problem.schema, rng)
    limi.generators.save(fitted, tmp_path / "people.trees")
    given = {"method": "natural", "max_rows": 500}
    one = audit(generator=fitted, **given)
    two = audit(generator=tmp_path / "people.trees", **given)
    pd.testing.assert_frame_equal(one.findings, two.findings)
    with pytest.raises(InvalidInput, match="fitted to columns that differ"):
        audit(frame=FRAME[FRAME.age < 60], generator=fitted, **given)
    with pytest.raises(InvalidInput, match="did you mean 'trees'"):
        audit(generator="tress", **given)


def test_a_search_that_stops_at_findings_still_measures_its_population_fairly():
    result = audit(method="themis", max_findings=5)
    assert result.stop == "findings"
    assert result.summary.findings == 5
    assert result.rates["uniform"].n == 500


def test_same_seed_same_findings_other_seed_others():
    frames = [
        audit(method="themis", max_rows=300, max_batch=b, seed=s).findings
        for b, s in ((100_000, 1), (37, 1), (100_000, 2))
    ]
    pd.testing.assert_frame_equal(frames[0], frames[1])
    assert not frames[0].equals(frames[2])


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_findings_have_the_type_of_the_table(kind):
    frame = FRAME.drop(columns="vip")
    plain = frame.astype({"job": str})
    given = pl.from_pandas(plain) if kind == "polars" else pa.Table.from_pandas(plain)

    def model(asked):
        rows = asked.to_pandas()
        return 1 / (1 + np.exp(-(rows.age / 40 + (rows.sex == "M") - 2)))

    result = limi.audit(
        model,
        given,
        protected=["sex"],
        target="ok",
        favorable="yes",
        method="themis",
        max_rows=2_000,
        rate_rows=200,
    )
    assert type(result.findings) is type(given)
    names = result.findings.columns if kind == "polars" else result.findings.column_names
    assert "sex__partner" in names
    assert len(result.findings) > 0


def test_a_model_that_ignores_the_protected_column_gives_nothing():
    result = audit(lambda frame: (frame["age"] > 40).to_numpy())
    assert result.summary.findings == 0
    assert len(result.findings) == 0
    assert result.rates["real"].estimate == 0
    assert result.rates["real"].high < 0.01
    assert list(result.findings.columns)[-1] == "partner_naturalness"


def test_several_protected_columns_with_ranges():
    result = audit(protected=["sex", "age=20-70:10"])
    assert result.summary.combinations == 12
    assert {"sex__partner", "age__partner"} <= set(result.findings.columns)
    # An age that is none of those tried stays as it is where only the sex changes.
    partner = result.findings["age__partner"]
    kept = (partner == result.findings["age"]) & (result.findings["flipped_by"] == "sex")
    assert (partner.isin([20, 30, 40, 50, 60, 70]) | kept).all()
    assert result.findings["age__partner"].dtype == FRAME["age"].dtype


def test_columns_that_the_model_does_not_take_are_left_out():
    frame = FRAME.assign(id=np.arange(len(FRAME)))
    result = audit(frame=frame)
    assert "id" not in result.findings.columns
    assert result.summary.findings == audit().summary.findings


def test_categories_reach_a_model_that_depends_on_them():
    features = FRAME.drop(columns="ok").astype({"sex": "category"})
    model = HistGradientBoostingClassifier(categorical_features="from_dtype", max_iter=20)
    model.fit(features, FRAME["ok"])
    result = audit(model, features.assign(ok=FRAME["ok"]))
    assert result.summary.findings > 0
    found = result.findings
    partner = found[features.columns].assign(sex=found["sex__partner"])
    assert (model.predict(found[features.columns]) != model.predict(partner)).all()


def test_query_budgets_cover_rates_and_search():
    result = audit(method="themis", max_queries=1_000, max_rows=None, rate_rows=10_000)
    assert result.summary.queries <= 1_000
    assert result.stop == "queries"
    assert result.rates["real"].n > 0


def test_a_column_called_score_keeps_its_name():
    frame = FRAME.rename(columns={"age": "score"})
    result = audit(lambda asked: (asked["sex"] == "M").to_numpy(), frame)
    assert {"score", "score_", "partner_score"} <= set(result.findings.columns)
    assert result.findings["score"].max() > 1


def test_a_result_shows_itself():
    result = audit()
    assert "findings by real" in repr(result)
    assert "real" in result._repr_html_()


# -- run folders ------------------------------------------------------------------------


def test_a_run_folder_holds_the_run(tmp_path):
    out = tmp_path / "run"
    result = audit(out=out, seed=3)
    names = sorted(p.name for p in out.iterdir())
    assert names == [
        *("findings.parquet", "manifest.json", "report.html"),
        *("schema.toml", "summary.json"),
    ]
    pd.testing.assert_frame_equal(pd.read_parquet(out / "findings.parquet"), result.findings)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["seed"] == 3
    assert len(manifest["data_sha256"]) == 64
    assert manifest["versions"]["numpy"] == np.__version__
    assert read_summary(out) == result.summary
    assert not out.with_name("run.partial").exists()


def test_another_batch_size_writes_the_same_bytes(tmp_path):
    for name, batch in (("a", 50), ("b", 5_000)):
        audit(out=tmp_path / name, method="themis", max_rows=500, max_batch=batch)
    files = [(tmp_path / name / "findings.parquet").read_bytes() for name in "ab"]
    assert files[0] == files[1]


def test_an_existing_folder_is_kept_unless_forced(tmp_path):
    out = tmp_path / "run"
    audit(out=out)
    before = (out / "summary.json").read_bytes()
    with pytest.raises(InvalidInput, match="force"):
        audit(out=out, seed=1)
    assert (out / "summary.json").read_bytes() == before
    audit(out=out, seed=1, force=True)
    assert read_summary(out).seed == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run"]


def test_a_failing_model_leaves_nothing_behind(tmp_path):
    def broken(frame):
        raise RuntimeError("no")

    with pytest.raises(BadModel, match="RuntimeError: no"):
        audit(broken, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_killed_run_is_resumed_and_gives_the_same(tmp_path):
    class Killed(BaseException):
        pass

    left = [46]

    def dying(frame):
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        return MODEL.predict_proba(frame)[:, 1]

    def well(frame):
        return MODEL.predict_proba(frame)[:, 1]

    dying.__name__ = well.__name__ = "model"
    given = {"method": "themis", "max_rows": 20_000, "max_batch": 1_000}
    with pytest.raises(BadModel, match="Killed"):
        audit(dying, out=tmp_path / "run", **given)
    assert (tmp_path / "run.partial" / "journal.bin").exists()
    with pytest.raises(InvalidInput, match="resume"):
        audit(well, out=tmp_path / "run", **given)
    with pytest.raises(InvalidInput, match="different settings"):
        audit(well, out=tmp_path / "run", resume=True, seed=9, **given)
    resumed = audit(well, out=tmp_path / "run", resume=True, **given)
    whole = audit(well, **given)
    pd.testing.assert_frame_equal(resumed.findings, whole.findings)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run"]


def test_an_interrupted_run_is_written_and_can_go_on(tmp_path):
    left = [36]

    def stopping(frame):
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return MODEL.predict_proba(frame)[:, 1]

    given = {"method": "themis", "max_rows": 20_000, "max_batch": 1_000, "out": tmp_path / "run"}
    first = audit(stopping, **given)
    assert first.stop == "interrupted"
    assert any("interrupted" in note for note in first.summary.notes)
    second = audit(stopping, resume=True, **given)
    assert second.stop == "rows"
    assert second.summary.findings > first.summary.findings
    assert not (tmp_path / "run" / "journal.bin").exists()


@pytest.mark.parametrize(
    ("name", "words"),
    [("proof.json", "a proof"), ("images.json", "a test of images"), ("repair.json", "a repair")],
)
def test_other_folders_of_limi_are_told_apart(tmp_path, name, words):
    (tmp_path / name).write_text("{}")
    with pytest.raises(InvalidInput, match=rf"holds {words}.*report\.html, or read {name}"):
        read_summary(tmp_path)


def test_run_folders_that_cannot_be_read(tmp_path):
    with pytest.raises(InvalidInput, match="no run folder"):
        read_summary(tmp_path / "none")
    with pytest.raises(CorruptStore, match=r"no summary\.json"):
        read_summary(tmp_path)
    for text, words in (
        ("{", "cannot be read"),
        ("[]", "holds no object"),
        ("{}", "no format"),
        ('{"format": 99}', "newer limi"),
        ('{"format": 1}', "damaged"),
    ):
        (tmp_path / "summary.json").write_text(text)
        with pytest.raises(CorruptStore, match=words):
            read_summary(tmp_path)


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidInput, match="is not a folder"):
        audit(out=tmp_path / "file")
    with pytest.raises(InvalidInput, match="cannot be written"):
        audit(out=tmp_path / "file" / "run")
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(InvalidInput, match="cannot be written"):
            audit(out=tmp_path / "run")


# -- bad input --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"target": "okay"}, BadTable, "did you mean 'ok'"),
        ({"protected": ["sax"]}, InvalidInput, "did you mean 'sex'"),
        ({"protected": ["ok"]}, InvalidInput, "is the target column"),
        ({"favorable": "maybe"}, InvalidInput, "not in the target column"),
        ({"favorable": None}, InvalidInput, "say which one people want"),
        ({"method": "limmi"}, InvalidInput, "unknown method"),
        ({"frame": FRAME.assign(sex="F")}, InvalidInput, "only one value"),
        ({"frame": FRAME.assign(ok="yes")}, BadTable, "has 1 different value "),
        (
            {"frame": FRAME.assign(ok=FRAME["job"].astype(str)), "favorable": None},
            InvalidInput,
            "say which ones people want, one or several",
        ),
        ({"frame": FRAME[:0]}, BadTable, "empty"),
        ({"frame": FRAME.drop(columns="job")}, BadModel, "needs the columns job"),
        ({"frame": FRAME.assign(job=1)}, BadModel, "the model raised"),
        ({"model": object()}, InvalidInput, "is not a model that limi recognises"),
        ({"model": LogisticRegression()}, BadModel, "not a fitted classifier"),
        ({"model": lambda f: np.full(len(f), np.nan)}, BadModel, "NaN or infinite"),
        ({"model": lambda f: np.zeros(3)}, BadModel, "3 answers for"),
        ({"model": lambda f: np.zeros((len(f), 3))}, BadModel, "returned 3 values per row"),
        ({"model": lambda f: f["job"].astype(str)}, BadModel, "return two labels"),
        ({"model": lambda f: f["age"].astype(float)}, BadModel, "must lie in"),
        ({"max_rows": 0}, InvalidInput, "above 0"),
        ({"max_queries": 1}, InvalidInput, "asked about at least 40 rows"),
        ({"seed": -1}, InvalidInput, "seed is -1"),
        ({"max_batch": 0}, InvalidInput, "max_batch is 0"),
        ({"rate_rows": -1}, InvalidInput, "rate_rows is -1"),
    ],
)
def test_bad_input_gets_one_sentence(change, error, words):
    with pytest.raises(error, match=words) as caught:
        audit(**change)
    assert isinstance(caught.value, LimiError)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code in (2, 4)


# -- a table of sixty rows -----------------------------------------------------------------


def few(n=60, **more):
    rng = np.random.default_rng(0)
    columns = {"sex": rng.choice(["F", "M"], n), "a": rng.integers(0, 30, n)}
    return pd.DataFrame(columns | more | {"y": rng.integers(0, 2, n)})


def lenient_to_men(asked):
    return 1 / (1 + np.exp(15 - asked["a"] - 4 * (asked["sex"] == "M")))


def audit_few(table, score=lenient_to_men, **more):
    given = {"protected": ["sex"], "target": "y", "method": "real", "generator": None, **more}
    return limi.audit(score, table, **given)


@pytest.mark.parametrize("method", ["real", "themis", "natural"])
def test_a_constant_column_is_no_trouble(method):
    table = few(const="k")[["const", "sex", "a", "y"]]
    result = audit_few(table, method=method, generator="trees", max_rows=500, rate_rows=50)
    assert result.summary.findings > 0


def test_causes_are_left_out_where_they_are_not_known():
    table = few(group=np.arange(60) % 3)
    given = {"protected": ["sex", "group"]}
    assert "flipped_by" in audit_few(table, **given).findings
    frugal = audit_few(table, **given, max_queries=400, rate_rows=0)
    assert frugal.summary.findings > 0
    assert "flipped_by" not in frugal.findings


def test_columns_of_text_and_numbers_are_refused_before_any_query():
    with pytest.raises(BadTable, match="mixes text and numbers"):
        audit_few(few(zip=pd.Series([1, "AB1"] * 30, dtype=object)))


def test_a_changed_function_cannot_take_over_an_unfinished_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.py").write_text(
        "n = []\ndef f(x):\n    n.append(1)\n    if len(n) > 14: raise RuntimeError('down')\n"
        "    return (x['sex'] == 'M').to_numpy() * 1.0\n"
    )
    given = {"protected": ["sex"], "target": "y", "method": "themis", "generator": None}
    given |= {"max_rows": 5_000, "max_batch": 4, "rate_rows": 4, "out": tmp_path / "run"}
    with pytest.raises(limi.LimiError, match="down"):
        limi.audit("python:m.py:f", few(), **given)
    assert (tmp_path / "run.partial").exists()
    (tmp_path / "m.py").write_text("def f(x):\n    return (x['a'] > 3).to_numpy() * 1.0\n")
    with pytest.raises(InvalidInput, match="different settings"):
        limi.audit("python:m.py:f", few(), resume=True, **given)


def test_force_replaces_nothing_but_runs(tmp_path, monkeypatch):
    kept = tmp_path / "thesis"
    kept.mkdir()
    (kept / "thesis.txt").write_text("years of work")
    with pytest.raises(InvalidInput, match="holds files that are not part of"):
        audit_few(few(), out=kept, force=True)
    assert (kept / "thesis.txt").read_text() == "years of work"
    monkeypatch.chdir(kept)
    for place in (".", ".."):
        with pytest.raises(InvalidInput, match="name a new folder"):
            audit_few(few(), out=place, force=True)


def test_a_report_that_cannot_be_written_is_one_sentence(tmp_path):
    with pytest.raises(InvalidInput, match="there is no folder"):
        audit_few(few()).report(tmp_path / "none" / "x.html")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"resume": True}, "resume=True continues a run folder, but none is named"),
        ({"force": True}, "force=True replaces a run folder, but none is named"),
        ({"out": limi.Out("run"), "force": True}, "beside an Out"),
        ({"out": limi.Out("run"), "resume": True}, "beside an Out"),
        (
            {"method": limi.methods.parse("real", ()), "settings": {"chunk": 5}},
            "beside a method object",
        ),
    ],
)
def test_what_would_be_ignored_is_refused(given, said):
    with pytest.raises(InvalidInput, match=said):
        audit(**given)


def test_settings_are_those_of_the_method_that_the_decision_chooses():
    """Classes and numbers are searched by guided, whose settings limi does not have."""
    frame = pd.DataFrame({"age": range(20, 60), "sex": ["F", "M"] * 20})

    def price(given):
        return given["age"] + 30.0 * (given["sex"] == "M")

    asked = {"protected": ["sex"], "max_rows": 300, "rate_rows": 0, "redact": False}
    settings = {"keenness": 0.5}
    result = limi.audit(price, frame, **asked, decision="difference > 25", settings=settings)
    assert result.summary.method == "guided"
    assert result.summary.settings["keenness"] == 0.5
    with pytest.raises(InvalidInput, match="keenness"):
        limi.audit(lambda given: given["age"] > 30, frame, **asked, settings=settings)
