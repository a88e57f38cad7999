"""Findings kept as a test: which pairs, what is written, and what a model says to them."""

import ast
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import limi
from limi.errors import BadModel, CorruptStore, InvalidInput
from limi.search.findings import Found
from limi.testing import read_pairs
from limi.testing.export import MODULE, PAIRS, _comment, _name, _quote, choose, export
from tests.changes import small
from tests.changes.small import by_sex, by_sex_or_race, people, people_of_two_kinds

PROGRAM = """
import numpy as np

def before(frame):
    young = frame["age"].to_numpy(dtype=float) < 20
    return np.where(young, np.where(frame["sex"] == "m", 0.8, 0.3), 0.2)

def after(frame):
    return np.where(frame["age"].to_numpy(dtype=float) < 20, 0.8, 0.2)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run of a model that decides by sex under 20."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "model.py").write_text(PROGRAM, encoding="utf-8")
    people().to_csv(folder / "people.csv", index=False)
    limi.audit(
        f"python:{folder / 'model.py'}:before",
        people(),
        protected=["sex"],
        target="ok",
        favorable="yes",
        output="score",
        generator=None,
        method="real",
        rate_rows=0,
        out=folder / "run",
        table_name=str(folder / "people.csv"),
    )
    return folder


@pytest.fixture(scope="module")
def written(place):
    uri = f"python:{place / 'model.py'}:before"
    done = export(place / "run", place / "tests" / "fair", pairs=30, allow=2, model=uri)
    return done, place / "tests" / "fair"


def test_the_module_is_readable_and_imports_limi_to_load_and_ask_alone(written):
    _, folder = written
    text = (folder / MODULE).read_text()
    tree = ast.parse(text)
    imported = [
        node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert imported == ["pathlib", "limi.testing"]
    assert [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] == [
        "test_decisions_do_not_depend_on_sex"
    ]
    assert 'MODEL = "python:" + str(HERE / "../../model.py:before")' in text
    assert "ALLOWED = 2" in text
    assert max(map(len, text.splitlines())) <= 100


def test_a_failure_names_the_column_that_flipped_a_pair_first(tmp_path):
    uri, table = f"python:{small.__file__}:by_sex_or_race", tmp_path / "people.csv"
    people_of_two_kinds().to_csv(table, index=False)
    limi.audit(
        uri,
        people_of_two_kinds(),
        protected=["race", "sex"],
        target="ok",
        favorable="yes",
        output="score",
        generator=None,
        method="real",
        rate_rows=0,
        out=tmp_path / "run",
        table_name=str(table),
    )
    export(tmp_path / "run", tmp_path / "tests", pairs=20, model=uri)
    told = str(read_pairs(tmp_path / "tests" / PAIRS).ask(by_sex_or_race)).splitlines()[1:4]
    assert len(told) == 3
    for line in told:
        cause = "sex" if int(line.partition("age ")[2].split(",")[0]) < 20 else "race"
        assert line.startswith(f"  {cause} ")
        assert f"(by {cause} in the run): score" in line


HOSTILE = 'm".py", __import__("os")) or x("""\'\'\'{0}\\.py'


def test_a_hostile_file_name_stays_a_text_in_the_module(place, tmp_path, monkeypatch):
    model = tmp_path / HOSTILE.replace("/", "")
    model.write_text(PROGRAM, encoding="utf-8")
    uri = f"python:{model}:before"
    export(place / "run", tmp_path / "fair", pairs=3, model=uri, trust=['a"); b(\'"'])
    tree = ast.parse((tmp_path / "fair" / MODULE).read_text(encoding="utf-8"))
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert calls == {"Path", "str", "limi.testing.read_pairs", "pairs.ask", "len"}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert {f"../{model.name}:before", 'a"); b(\'"'} <= texts


@pytest.mark.parametrize("spelled", ['"x"\nimport os', '"x', '"x"; y = 1', "\0"])
def test_a_module_that_would_hold_other_statements_is_never_written(
    place, tmp_path, monkeypatch, spelled
):
    monkeypatch.setattr("limi.testing.export._spell_model", lambda uri, folder: spelled)
    uri = f"python:{place / 'model.py'}:before"
    with pytest.raises(InvalidInput, match="cannot be written into a test"):
        export(place / "run", tmp_path / "fair", pairs=3, model=uri)
    assert not (tmp_path / "fair").exists()


@pytest.mark.parametrize("column", ["sex²", "年龄", "sex): pass\n", '"""', "a" * 500, "\uff11"])
def test_a_module_of_any_protected_column_is_python(tmp_path, column):
    told = people(60).rename(columns={"sex": column})
    (tmp_path / "m.py").write_text(PROGRAM.replace('"sex"', repr(column)), encoding="utf-8")
    told.to_csv(tmp_path / "people.csv", index=False)
    uri = f"python:{tmp_path / 'm.py'}:before"
    limi.audit(
        uri,
        told,
        protected=[f"{column}=f,m"],
        target="ok",
        favorable="yes",
        output="score",
        generator=None,
        method="real",
        rate_rows=0,
        out=tmp_path / "run",
        table_name=str(tmp_path / "people.csv"),
    )
    export(tmp_path / "run", tmp_path / "fair", pairs=2, model=uri)
    text = (tmp_path / "fair" / MODULE).read_text(encoding="utf-8")
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert len(names) == 1
    assert names[0].isascii()
    assert max(map(len, text.splitlines())) <= 100


@given(st.text(st.characters(codec=None)))
def test_any_text_is_a_literal_a_comment_and_a_part_of_a_name(text):
    assert ast.literal_eval(_quote(text)) == text
    assert _quote(text).isprintable() or not text.isprintable()
    written = f"{_comment(text)}\ndef test_{_name(text)}(): pass\n"
    written = written.encode("utf-8", "backslashreplace").decode()
    tree = ast.parse(written)
    assert [type(node) for node in tree.body] == [ast.FunctionDef]
    assert tree.body[0].name == f"test_{_name(text)}"


def test_the_pairs_flip_before_and_not_after(written, place):
    done, folder = written
    assert (done.pairs, len(done.asked), done.passes) == (30, 30, False)
    pairs = read_pairs(folder / PAIRS)
    assert len(pairs) == 30
    assert len(pairs.ask(f"python:{place / 'model.py'}:before")) == 30
    assert len(pairs.ask(f"python:{place / 'model.py'}:after")) == 0
    some = pairs.ask(by_sex(10))
    assert len(some) == int((pairs.frame["age"] < 10).sum())


def test_a_failure_explains_itself_with_three_pairs(written):
    _, folder = written
    lines = str(read_pairs(folder / PAIRS).ask(by_sex(20))).splitlines()
    assert lines[0].startswith("30 of 30 pairs of people are decided differently when only sex")
    assert len(lines) == 5
    assert all("sex " in line and "score " in line for line in lines[1:4])


def test_a_model_that_takes_fewer_columns_is_asked_with_those(written):
    from sklearn.linear_model import LogisticRegression

    _, folder = written
    pairs = read_pairs(folder / PAIRS)
    frame = people().assign(sex=lambda told: (told["sex"] == "m").astype(int))
    young = LogisticRegression().fit(frame[["age"]], frame["age"] < 20)
    young.classes_ = np.array(["no", "yes"])
    assert len(pairs.ask(young)) == 0

    def wants_more(told):
        return told["height"]

    with pytest.raises(BadModel, match="height"):
        pairs.ask(wants_more)


def test_the_most_natural_and_the_strongest_are_kept_in_turn():
    n = 6
    found = Found(
        rows=np.zeros((n, 1)),
        partner=np.zeros((n, 1)),
        score=np.array([0.9, 0.6, 0.6, 0.6, 0.8, 0.6]),
        partner_score=np.full(n, 0.1),
        origin=np.full(n, "x"),
        seconds=np.zeros(n),
        causes=np.zeros(n, dtype=np.uint8),
        naturalness=np.array([0.0, 0.9, 0.2, 0.8, 0.1, np.nan]),
        partner_naturalness=np.array([0.0, 0.9, 0.9, 0.1, 0.1, 0.1]),
    )
    assert choose(found, 4).tolist() == [1, 0, 2, 4]
    assert sorted(choose(found, 99).tolist()) == list(range(n))
    untold = replace(found, naturalness=np.empty(0), partner_naturalness=np.empty(0))
    assert choose(untold, 2).tolist() == [0, 4]


def test_the_same_run_is_written_the_same(written, place):
    _, folder = written
    uri = f"python:{place / 'model.py'}:before"
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    export(place / "run", folder, pairs=30, allow=2, model=uri, force=True)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_nothing_is_replaced_without_a_word_and_nothing_written_in_error(written, place, tmp_path):
    _, folder = written
    uri = f"python:{place / 'model.py'}:before"
    with pytest.raises(InvalidInput, match="exists already; replace it with --force"):
        export(place / "run", folder, model=uri)
    with pytest.raises(InvalidInput, match="may run code"):
        export(place / "run", tmp_path / "new")
    with pytest.raises(InvalidInput, match="--pairs is 0"):
        export(place / "run", tmp_path / "new", pairs=0, model=uri)
    with pytest.raises(InvalidInput, match="--allow is -1"):
        export(place / "run", tmp_path / "new", allow=-1, model=uri)
    assert list(tmp_path.iterdir()) == []


def test_files_that_hold_no_pairs_are_refused_in_a_sentence(written, tmp_path):
    _, folder = written
    with pytest.raises(InvalidInput, match="there is no file"):
        read_pairs(tmp_path / "gone.parquet")
    path = tmp_path / "x.parquet"
    path.write_bytes(b"no parquet")
    with pytest.raises(CorruptStore, match="cannot be read"):
        read_pairs(path)
    pd.DataFrame({"age": [1]}).to_parquet(path)
    with pytest.raises(CorruptStore, match="holds no pairs that limi export wrote"):
        read_pairs(path)
    table = pq.read_table(folder / PAIRS)
    kept = json.loads(table.schema.metadata[b"limi.pairs"])
    for change, says in (
        ({"format": 99}, "written by a newer limi"),
        ({"schema": "x = 1"}, "are damaged"),
        ({"labels": None}, "cannot be read"),
    ):
        metadata = {b"limi.pairs": json.dumps(kept | change).encode()}
        pq.write_table(table.replace_schema_metadata(metadata), path)
        with pytest.raises(CorruptStore, match=says):
            read_pairs(path)


def test_pairs_without_their_columns_are_refused(written, tmp_path):
    _, folder = written
    table = pq.read_table(folder / PAIRS)
    pq.write_table(table.drop_columns(["sex__partner"]), tmp_path / "x.parquet")
    with pytest.raises(CorruptStore, match="sex__partner"):
        read_pairs(tmp_path / "x.parquet")
