"""The first minutes with a table as it was published: no edit, no target, what was understood."""

import json

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import limi as package
from limi import errors
from tests.table.courts import TAKEN, court_file

MODEL = f"""
TAKEN = {TAKEN!r}

def free(frame):
    return 0.9 - 0.06 * frame["priors_count"].clip(upper=9) - 0.2 * (frame["sex"] == "Male")

def by_case(frame):
    known = frame["c_case_number"].str.len() > 3
    return free(frame) * known
"""
SMALL = ("--max-rows", "150", "--rate-rows", "60", "--method", "natural")


@pytest.fixture(scope="module")
def court(tmp_path_factory):
    folder = tmp_path_factory.mktemp("court")
    court_file().to_csv(folder / "court.csv", index=False)
    (folder / "model.py").write_text(MODEL)
    return folder


@pytest.fixture
def here(court, monkeypatch):
    monkeypatch.chdir(court)
    return court


def words(text):
    return " ".join(text.split())


def test_a_court_file_goes_from_download_to_page_in_two_commands(here, limi):
    code, _, err = limi("schema", "court.csv", "--out", "schema.toml", "--force")
    assert code == 0, err
    written = (here / "schema.toml").read_text()
    assert written.count('kind = "ignored"') == 21
    assert "ada" not in written  # no name of a person
    code, _, err = limi(
        *("test", "court.csv", "--model", "python:model.py:free", "--protected", "sex"),
        *("--schema", "schema.toml", "--out", "run", "--force", *SMALL),
    )
    assert (code, err) == (0, "")
    assert (here / "run" / "report.html").exists()
    summary = json.loads((here / "run" / "summary.json").read_text())
    assert summary["findings"] > 0
    assert summary["target"] is None


def test_dates_and_identifiers_are_left_out_and_said_without_a_schema(here, limi):
    code, out, _ = limi(
        *("test", "court.csv", "--model", "python:model.py:free", "--protected", "sex", "--json"),
        *("--target", "two_year_recid", "--favorable", "0", *SMALL),
    )
    assert code == 0
    told = json.loads(out)
    assert told["n_columns"] == 53 - 1 - 1 - 21  # the label, the empty one, dates and identifiers
    notes = words(" ".join(told["notes"]))
    assert "hold names or identifiers, different in nearly every row" in notes
    assert "'dob'" in notes
    names = {field["name"] for example in told["examples"] for field in example["fields"]}
    assert not names & {"name", "dob", "id", "c_case_number"}


def test_a_function_that_needs_an_identifier_is_given_it_and_its_cells_are_hidden(here, limi):
    code, out, err = limi(
        *("test", "court.csv", "--model", "python:model.py:by_case", "--protected", "sex"),
        *("--out", "hid", "--force", "--full", *SMALL),
    )
    assert (code, err) == (0, "")
    assert "the model takes" in words(out)
    assert "'c_case_number' looks like identifiers; its cells are hidden" in words(out)
    cases = set(court_file()["c_case_number"])
    for file in ("report.html", "summary.json", "schema.toml"):
        assert "CF10A" not in (here / "hid" / file).read_text()
    found = pq.read_table(here / "hid" / "findings.parquet").to_pandas()
    assert set(found["c_case_number"]) == {"hidden"}
    assert not cases & set(found.astype(str).to_numpy().ravel())
    code, _, err = limi("replay", "hid", "--model", "python:model.py:by_case")
    assert code == 2
    assert "hides 'name', 'c_case_number'" in err or "--show-personal" in err
    code, out, _ = limi("report", "hid")
    assert code == 0
    assert "CF10A" not in out


def test_every_column_is_listed_on_request_with_the_line_that_changes_it(here, limi):
    code, _, err = limi(
        *("test", "court.csv", "--model", "python:model.py:free", "--protected", "sex"),
        *("--verbose", "--plan"),
    )
    assert code == 0
    said = words(err)
    assert "240 rows and 53 columns" in said
    assert "look like dates" in said
    assert "'violent_recid' is left out" in said
    assert '[columns."name"] kind = "categorical"' in said
    assert "holds numbers from 18 to 69" in said


def test_nothing_is_said_before_a_run_where_nobody_sits(here, limi):
    code, _, err = limi(
        *("test", "court.csv", "--model", "python:model.py:free", "--protected", "sex", "--plan")
    )
    assert (code, err) == (0, "")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(1)
    n = 200
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, n),
            "sex": rng.integers(0, 2, n),
            "debt": rng.integers(0, 9, n),
            "approved": rng.integers(0, 2, n),
            "mail": [f"p{k}@mail.example" for k in range(n)],
            "day": pd.date_range("2020-01-01", periods=n).strftime("%Y-%m-%d"),
        }
    )


def counted(columns):
    """A model that knows how many columns it takes, and no names."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    given = rng.integers(0, 9, (300, columns))
    return LogisticRegression().fit(given, given.sum(axis=1) > 4 * columns)


def test_a_label_that_nobody_named_is_not_given_to_the_model(people):
    result = package.audit(counted(3), people, protected="sex", max_rows=50, rate_rows=20)
    assert result.problem.schema.names == ["age", "sex", "debt"]
    assert any("'approved' looks like the label" in note for note in result.summary.notes)


def test_a_model_that_counts_other_columns_gets_what_to_add(people):
    with pytest.raises(errors.BadModel, match="pass only="):
        package.audit(counted(1), people, protected="sex", max_rows=50)
    with pytest.raises(errors.BadModel, match=r"pass drop=\['approved', 'mail'\]"):
        package.audit(counted(4), people, protected="sex", max_rows=50)


def test_the_command_line_prints_the_whole_command(people, tmp_path, monkeypatch, limi):
    import skops.io

    monkeypatch.chdir(tmp_path)
    people.to_csv("people.csv", index=False)
    skops.io.dump(counted(4), "model.skops")
    given = ("test", "people.csv", "--model", "skops:model.skops", "--protected", "sex")
    code, _, err = limi(*given)
    assert code == 4
    assert words(err).endswith(f": limi {' '.join(given)} --drop approved --drop mail")


def test_a_column_that_was_left_out_and_is_wanted_is_named_with_the_command(
    people, tmp_path, monkeypatch, limi
):
    import skops.io
    from sklearn.linear_model import LogisticRegression

    monkeypatch.chdir(tmp_path)
    people.to_csv("people.csv", index=False)
    wanted = ["age", "sex", "debt"]
    skops.io.dump(LogisticRegression().fit(people[wanted], people["approved"]), "model.skops")
    given = ("test", "people.csv", "--model", "skops:model.skops", "--protected", "sex")
    for left_out in (("--drop", "debt"), ("--only", "age,sex"), ("--only=age,sex",)):
        code, _, err = limi(*given, *left_out)
        assert code == 4
        assert "needs 'debt', which --drop or --only left out" in words(err)
        assert words(err).endswith(f"try: limi {' '.join(given)} --only age,sex,debt")


def test_two_protected_columns_in_one_option_get_the_two_options(people):
    with pytest.raises(errors.InvalidInput, match="name each of 'sex', 'debt' by itself"):
        package.audit(counted(3), people, protected="sex, debt")


def test_the_other_decision_is_called_by_its_name_or_by_what_it_is_not(people):
    common = {"protected": "sex", "max_rows": 20, "rate_rows": 10, "method": "natural"}

    def score(given):
        return (given["age"] > 40).to_numpy(float)

    assert package.audit(score, people, **common).summary.unfavorable == "not 1"
    named = package.audit(score, people, **common, label_names="1=granted,0=refused").summary
    assert (named.favorable, named.unfavorable) == ("granted", "refused")


def test_only_names_the_columns_of_the_model(people):
    result = package.audit(
        counted(2), people, protected="sex", only=["age,debt"], max_rows=50, rate_rows=20
    )
    assert result.problem.unseen == ("sex",)
    assert result.problem.schema.names == ["age", "debt", "sex"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"drop": "gone"}, "drop names 'gone', which is not a column"),
        ({"only": ["age", "ag"]}, "did you mean 'age'"),
        ({"only": "age", "drop": "debt"}, "both given"),
        ({"drop": ["age", "sex", "debt", "approved", "mail", "day"]}, "no column is left"),
        ({"redact": "gone"}, "redact names 'gone'"),
        ({"redact": "sex"}, "is protected"),
    ],
)
def test_columns_that_cannot_be_left_out_or_hidden_are_refused(people, given, said):
    with pytest.raises(errors.InvalidInput, match=said):
        package.audit(
            lambda frame: frame["age"] / 60, people, protected="sex", max_rows=20, **given
        )


def test_people_who_are_real_are_counted(people):
    frame = people[["age", "sex", "debt"]]
    result = package.audit(
        lambda given: 0.3 + 0.4 * given["sex"],
        frame,
        protected="sex",
        method="real",
        redact=["debt"],
        rate_rows=20,
    )
    assert result.summary.real_people == result.summary.findings > 0
    shown = {f.value for e in result.summary.examples for f in e.fields if f.name == "debt"}
    assert shown == {"hidden"}


def test_personal_data_that_will_be_shown_are_named_before_a_run_even_in_a_pipe(here, limi):
    given = ("test", "court.csv", "--model", "python:model.py:by_case", "--protected", "sex")
    code, _, err = limi(*given, "--plan", "--show-personal")
    assert code == 0
    assert words(err).startswith("Warning: columns with personal data that the model takes")
    assert "'c_case_number' (identifiers)" in words(err)


def test_the_terminal_says_first_that_rates_were_measured_on_few_rows(here, limi):
    code, out, _ = limi(
        *("test", "court.csv", "--model", "python:model.py:free", "--protected", "sex"),
        *("--max-queries", "600", "--method", "natural"),
    )
    assert code == 0
    notes = words(out).partition("Notes")[2]
    assert "each rate was measured on at most" in notes.partition(" - ")[2].partition(" - ")[0]
