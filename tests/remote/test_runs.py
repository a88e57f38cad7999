"""Whole runs over models behind an address: the same findings, each row paid for once."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import limi as package
from limi import Remote, audit
from limi.audits import conduct
from limi.audits.compare import compare
from limi.errors import BadModel, InvalidInput, Unreachable
from tests.remote.faults import WAYS, spoiled
from tests.remote.servers import COLUMNS, App, favorable_chance, people, serving

GIVEN = {
    "protected": "sex",
    "target": "ok",
    "method": "themis",
    "generator": None,
    "rate_rows": 60,
    "seed": 0,
}
QUERIES = {**GIVEN, "max_queries": 1200}


def function(frame):
    return favorable_chance(frame)


def same(one, other):
    """Are these the same findings, with the same scores?"""
    a, b = one.found, other.found
    return (
        np.array_equal(a.rows, b.rows, equal_nan=True)
        and np.array_equal(a.partner, b.partner, equal_nan=True)
        and np.array_equal(a.score, b.score)
        and np.array_equal(a.partner_score, b.partner_score)
    )


@pytest.fixture(scope="module")
def plain(table):
    """The run through a server without faults."""
    with serving(App()) as address:
        return audit(f"mlflow:{address}", table, **QUERIES)


TEMPLATE = """
url = "{address}/score{one}"
per = "{per}"
[body]
{name} = "{what}"
[answer]
scores = "{path}"
"""


@pytest.fixture(scope="module")
def in_process(table):
    return audit(function, table, **GIVEN, max_rows=300)


@pytest.mark.parametrize(
    "place",
    [
        "mlflow:{}",
        "mlflow:{}/invocations",
        "instances:{}/v1/models/credit:predict",
        "instances:{}/v1/models/credit:predict#form=lists",
        "csv:{}/csv",
        "oip:{}#credit",
        "request",
    ],
)
def test_findings_through_a_server_are_those_in_process(
    app, address, table, in_process, place, tmp_path
):
    if place == "request":
        words = {"one": "", "per": "batch", "name": "people", "what": "{records}"}
        file = tmp_path / "service.toml"
        file.write_text(TEMPLATE.format(address=address, **words, path="result.*.p"))
        place = f"request:{file}"
    through = audit(place.format(address), table, **GIVEN, max_rows=300)
    assert len(in_process.found) > 20
    assert same(through, in_process)
    assert through.summary.rates == in_process.summary.rates
    # Some rows are asked four times on purpose, to see whether the answers stay.
    assert through.summary.remote["rows_sent"] == app.asked


def test_a_service_of_single_rows_is_asked_row_by_row(app, address, table, tmp_path):
    words = {"one": "-one", "per": "row", "name": "person", "what": "{record}"}
    file = tmp_path / "service.toml"
    file.write_text(TEMPLATE.format(address=address, **words, path="p"))
    few = {**GIVEN, "rate_rows": 10, "max_queries": 200}
    by_row = audit(f"request:{file}", table, **few)
    with serving(App()) as other:
        assert same(by_row, audit(f"mlflow:{other}", table, **few))
    assert app.requests == app.asked <= 200


def test_labels_alone_are_understood(table):
    labels = App(lambda frame: np.where(favorable_chance(frame) > 0.5, "yes", "no"))
    spelled = table.assign(ok=np.where(table["ok"] == 1, "yes", "no"))
    given = {**GIVEN, "favorable": "yes", "max_rows": 200}
    with serving(labels) as address:
        through = audit(f"mlflow:{address}", spelled, **given)
    here = audit(lambda f: np.where(favorable_chance(f) > 0.5, "yes", "no"), spelled, **given)
    assert len(here.found) > 10
    assert same(through, here)
    strange = App(lambda frame: np.full(len(frame), "maybe"))
    with serving(strange) as address, pytest.raises(BadModel, match="answers 'maybe'"):
        audit(f"mlflow:{address}", spelled, **given)


@pytest.mark.parametrize("most", [100, 333, 1200])
def test_no_more_rows_are_sent_than_allowed_in_all_that_a_run_does(app, address, table, most):
    result = audit(f"mlflow:{address}", table, **GIVEN, max_queries=most)
    assert app.asked == result.summary.remote["rows_sent"] == result.summary.queries <= most
    assert app.asked > 0.8 * most
    assert result.summary.rows_checked > 0


def test_a_repeated_run_with_the_cache_sends_nothing(app, address, table, plain, tmp_path):
    given = {**QUERIES, "remote": Remote(cache=tmp_path / "cache", price=2.5)}
    first = audit(f"oip:{address}#credit", table, **given)
    asked = app.requests
    again = audit(f"oip:{address}#credit", table, **given)
    assert app.requests == asked
    assert same(first, again)
    assert again.summary.remote["rows_sent"] == 0
    assert again.summary.remote["cost"] == 0
    assert first.summary.remote["cost"] == round(2.5 * app.asked / 1000, 6)
    assert any("that costs" in note for note in first.summary.notes)
    # Another method asks for what is not known yet, and for nothing else.
    audit(f"oip:{address}#credit", table, **{**given, "method": "real"})
    assert max(app.rows.values()) == 4  # those whose steadiness was looked at


def test_methods_that_are_compared_share_their_answers(app, address, table, tmp_path):
    given = {k: v for k, v in GIVEN.items() if k not in ("method", "rate_rows")}
    lines = compare(
        f"mlflow:{address}",
        table,
        ["themis", "themis"],
        **given,
        max_queries=400,
        max_rows=None,
        remote=Remote(cache=tmp_path / "cache"),
    )
    assert lines[0].findings == lines[1].findings > 0
    assert app.asked <= 400


def test_a_replay_notices_that_a_server_answers_by_chance(app, address, table, tmp_path):
    few = {**GIVEN, "rate_rows": 10, "max_queries": 200, "out": tmp_path / "run"}
    audit(f"mlflow:{address}", table, **few)
    rng = np.random.default_rng(0)
    with serving(App(lambda frame: rng.random(len(frame)))) as other:
        told = package.replay(tmp_path / "run", f"mlflow:{other}", table=table)
    assert any("got a different score when they were asked again" in note for note in told.notes)
    assert (told.outcome == "no longer flips").mean() > 0.9


def test_a_model_that_answers_by_chance_flips_nobody_in_a_diff(app, address, table, tmp_path):
    few = {**GIVEN, "rate_rows": 10, "max_queries": 200, "out": tmp_path / "run"}
    audit(f"mlflow:{address}", table, **few)
    rng = np.random.default_rng(0)
    with serving(App(lambda frame: (rng.random(len(frame)) < 0.5) * 0.8)) as other:
        told = package.diff(
            tmp_path / "run",
            model=f"mlflow:{other}",
            before_model=f"mlflow:{address}",
            table=table,
            rows=60,
        )
    (real,) = told.populations
    # Asked once, half of the rows would seem to flip.
    assert real.change.after.estimate < 0.05


def test_a_gate_sends_no_more_rows_than_allowed_and_answers_as_in_process(app, address, table):
    given = {"protected": "sex", "target": "ok", "generator": None, "max_queries": 600}
    rules = ["real_rate <= 90 %"]
    there = package.gate(f"mlflow:{address}", table, rules, **given)
    here = package.gate(function, table, rules, **given)
    assert there.answer == here.answer == "pass"
    assert app.asked <= 600


@pytest.mark.parametrize("seed", [0, 1])
def test_faults_change_nothing_but_the_time(table, plain, seed):
    app = App()
    with serving(app) as behind, spoiled(behind, seed=seed, share=0.3) as (address, proxy):
        remote = Remote(backoff=0.002, timeout=2, concurrency=6)
        through = audit(f"mlflow:{address}", table, **QUERIES, remote=remote)
    assert same(through, plain)
    assert through.summary.remote["rows_sent"] == plain.summary.remote["rows_sent"] <= 1200
    assert max(proxy.delivered.values()) == 1  # nothing was asked twice after success
    assert through.summary.remote["requests_failed"] > 0


@pytest.mark.parametrize("way", WAYS)
def test_every_kind_of_fault_alone_changes_nothing(table, way):
    few = {**GIVEN, "rate_rows": 10, "max_queries": 200}
    with serving(App()) as address:
        calm = audit(f"mlflow:{address}", table, **few)
        with spoiled(address, ways=(way,), share=0.4, pause=0.01) as (there, proxy):
            remote = Remote(backoff=0.001, timeout=2)
            through = audit(f"mlflow:{there}", table, **few, remote=remote)
    assert proxy.seen[way]
    assert same(through, calm)
    assert through.summary.remote["rows_sent"] == calm.summary.remote["rows_sent"]


def test_a_dry_run_asks_for_nothing(app, address, table):
    told = []
    with pytest.raises(InvalidInput, match="a dry run has no result"):
        audit(f"mlflow:{address}", table, **QUERIES, dry_run=True, on_plan=told.append)
    assert app.requests == 0
    questions = told[0].questions
    assert set(questions) == {"contract", "rates", "search", "second_check"}
    assert sum(questions.values()) <= 1200
    actual = audit(f"mlflow:{address}", table, **QUERIES)
    assert actual.summary.phases["rates"]["questions"] <= questions["rates"]


COMMAND = (
    *("test", "people.csv", "--target", "ok", "--protected", "sex", "--generator", "none"),
    *("--method", "themis", "--rate-rows", "60", "--max-queries", "1200", "--out", "run"),
)


def start(folder, address, *words, **more):
    here = str(Path(package.__file__).parent.parent)
    return subprocess.Popen(
        [sys.executable, "-m", "limi", *COMMAND, "--model", f"mlflow:{address}", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": here},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **more,
    )


def findings(folder):
    import pandas as pd

    return pd.read_parquet(folder / "run" / "findings.parquet")


def test_a_killed_run_goes_on_with_the_same_findings_and_pays_for_nothing_twice(
    table, plain, tmp_path
):
    table.to_csv(tmp_path / "people.csv", index=False)
    app = App()
    with serving(app) as behind, spoiled(behind, seed=3, pause=0.02) as (address, proxy):
        killed = start(tmp_path, address)
        end = time.monotonic() + 60
        while len(app.rows) < 400 and time.monotonic() < end:
            time.sleep(0.005)
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        answered = len(app.rows)  # distinct rows: one that is sent again is counted once
        assert answered >= 400
        assert not (tmp_path / "run").exists()
        done = start(tmp_path, address, "--resume")
        _, err = done.communicate()
    assert done.returncode == 0, err.decode()
    written = findings(tmp_path)
    assert len(written) == len(plain.found)
    assert np.array_equal(written["score"].to_numpy(), plain.found.score)
    assert np.array_equal(written["partner_score"].to_numpy(), plain.found.partner_score)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    # Rows are counted before they are sent, so the count holds all that the server ever saw.
    before = summary["remote"]["rows_sent_before"]
    assert answered <= before < summary["remote"]["rows_sent"] <= 1200
    assert any("before the run was resumed" in note for note in summary["notes"])
    # What was on its way at the kill may be asked again, and nothing else.
    twice = [body for body, n in proxy.delivered.items() if n > 1]
    assert len(twice) <= 4


def test_a_server_that_goes_away_leaves_a_run_that_can_be_resumed(
    table, plain, tmp_path, limi, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    table.to_csv("people.csv", index=False)
    app = App()
    app.before = lambda *request: (503, {"Retry-After": "9999"}, b"") if app.asked > 700 else None
    with serving(app) as address:
        words = (*COMMAND, "--model", f"mlflow:{address}")
        code, out, err = limi(*words)
        assert code == 130
        assert "--resume" in err
        assert "does not answers" in out or "asks for a pause" in out
        known = app.asked
        app.before = None
        code, out, err = limi(*words, "--resume")
    assert code == 0, err
    assert app.asked <= 1200
    assert app.asked > known
    assert np.array_equal(findings(tmp_path)["score"].to_numpy(), plain.found.score)


def test_no_secret_is_written_anywhere(table, tmp_path, limi, monkeypatch):
    canary = "canary-48151623"
    monkeypatch.setenv("LIMI_TEST_TOKEN", canary)
    monkeypatch.chdir(tmp_path)
    table.to_csv("people.csv", index=False)
    app = App()
    words = (*COMMAND, "--header", "Authorization: Bearer $LIMI_TEST_TOKEN", "--cache", "cache")
    with serving(app) as address:
        code, out, err = limi(*words, "--model", f"mlflow:{address}")
        assert code == 0, err
        assert all(h["Authorization"] == f"Bearer {canary}" for h in app.headers)
        app.before = lambda *request: (400, "text/plain", f"not {canary}".encode())
        refused = limi(*words[:-1], "other", "--model", f"mlflow:{address}", "--force")
        broken = limi(*words[:-1], "third", "--model", "mlflow:http://127.0.0.1:9", "--force")
    assert refused[0] == broken[0] == 4
    assert "$LIMI_TEST_TOKEN" in refused[2]
    shown = out + err + "".join(refused[1:]) + "".join(broken[1:])
    assert canary not in shown
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"report.html", "summary.json", "manifest.json", "cache"} <= {p.name for p in written}
    assert not [path for path in written if canary.encode() in path.read_bytes()]
    assert "$LIMI_TEST_TOKEN" in (tmp_path / "run" / "manifest.json").read_text()


REQUEST = 'url = "http://127.0.0.1:1/x"\n[body]\na = "{records}"\n[answer]\nscores = "p"\n'


@pytest.mark.parametrize(
    ("model", "more", "code", "words"),
    [
        ("mlflow:{}/nowhere", (), 4, "does not know POST /nowhere/invocations"),
        ("oip:{}#other", (), 4, "does not know GET /v2/models/other"),
        ("oip:{}", (), 2, "does not name a model"),
        ("oip:{}#credit?form=heap", (), 2, "unknown form 'heap'"),
        ("csv:{}/csv#header=yes", (), 4, "does not answer"),
        ("mlflow:ftp://h", (), 2, "not an http or https address"),
        ("mlflow:{}", ("--header", "Authorization: Bearer $NOT_SET_HERE"), 2, "is not set"),
        ("mlflow:{}", ("--cache", "people.csv"), 2, "not a limi cache"),
        ("mlflow:{}", ("--concurrency", "0"), 2, "concurrency is 0"),
        ("mlflow:{}", ("--price", "-1"), 2, "price is -1"),
        ("mlflow:{}", ("--max-queries", "10"), 2, "asked about at least 40 rows"),
        ("mlflow:{}#columns=age,sexx", (), 4, "sexx"),
        ("demo:income", ("--concurrency", "2"), 2, "for a model behind an address"),
        ("request:none.toml", (), 2, "there is no file"),
        ("request:bad.toml", (), 2, "has the placeholder 'reccords'"),
    ],
)
def test_bad_input_is_one_sentence(
    app, address, table, tmp_path, limi, monkeypatch, model, more, code, words
):
    monkeypatch.chdir(tmp_path)
    table.to_csv("people.csv", index=False)
    Path("bad.toml").write_text(REQUEST.replace("records", "reccords"))
    asked = [*COMMAND[:-4], *(("--max-queries", "300") if "--max-queries" not in more else ())]
    given, out, err = limi(*asked, "--model", model.format(address), *more)
    assert given == code, err
    assert words in err
    assert err.count("\n") == 1
    assert out == ""
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.toml", "people.csv"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = ", "not valid TOML"),
        ('urll = "x"', "did you mean 'url'"),
        ('[body]\na = "{records}"', "has no address"),
        (REQUEST.replace("{records}", "all"), "no row would be sent"),
        (REQUEST.replace("[answer]", "[ answers ]"), "did you mean 'answer'"),
        (REQUEST.replace("scores", "score"), "must say where the answers are"),
        ('per = "table"\n' + REQUEST, "it must be .batch. or .row."),
        ('method = "GET"\n' + REQUEST, "nown: POST, PUT"),
        ("columns = 3\n" + REQUEST, "must be a list of names"),
    ],
)
def test_a_template_that_cannot_be_used_is_refused(tmp_path, text, words):
    file = tmp_path / "service.toml"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=words):
        package.models.load(f"request:{file}")


def test_a_wrong_address_leaves_nothing_behind(app, address, table, tmp_path, limi, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table.to_csv("people.csv", index=False)
    for more in ((), ("--cache", "answers")):
        code, _, err = limi(*COMMAND, "--model", f"mlflow:{address}/nowhere", *more)
        assert code == 4, err
        assert sorted(path.name for path in tmp_path.iterdir()) == ["people.csv"]


def test_where_rows_go_is_said_before_they_do(app, address, table, tmp_path, limi, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table.to_csv("people.csv", index=False)
    told = []
    monkeypatch.setattr("limi.cli._console.err", Console(force_terminal=True, file=io.StringIO()))
    monkeypatch.setattr(
        "limi.cli._console.err.print", lambda text, **given: told.append((text, app.requests))
    )
    limi(*COMMAND, "--model", f"mlflow:{address}/nowhere")
    host = address.removeprefix("http://")
    assert (f"rows are sent to {host}, and nowhere else", 0) in told


@pytest.mark.parametrize("path", ["result.-99.p", "result.\u00b2.p", "result.99.p"])
def test_a_place_that_the_answer_lacks_is_said(app, address, table, tmp_path, path):
    file = tmp_path / "service.toml"
    words = {"one": "", "per": "batch", "name": "people", "what": "{records}"}
    file.write_text(TEMPLATE.format(address=address, **words, path=path))
    with pytest.raises(BadModel, match=f"no '{path.split('.')[1]}' at "):
        audit(f"request:{file}", table, **GIVEN, remote=Remote(backoff=0.001))


@pytest.mark.parametrize("body", [b"a" * 200_000, b"0.5,\x00", b'0.5\r"0.4'])
def test_lines_that_are_no_csv_are_said_to_be(app, address, table, body):
    app.before = lambda *request: (200, "text/csv", body)
    with pytest.raises(BadModel, match="6 times in a row"):
        audit(f"csv:{address}/csv", table, **GIVEN, remote=Remote(backoff=0.001))


def test_answers_of_lines_are_numbers_only_where_they_look_like_it():
    from limi.models.csv import _number

    told = [_number(text) for text in ("1", " 0.5", "-2e-3", "1_0", "\u0663", "yes", "0x1", ".5")]
    assert repr(told) == repr([1, 0.5, -0.002, "1_0", "\u0663", "yes", "0x1", 0.5])
    for text in ("nan", "-Infinity", "1e999"):
        with pytest.raises(BadModel, match="finite"):
            _number(text)


def says(*inputs):
    """A server of the Open Inference Protocol that says what its model takes."""
    tree = {"inputs": [{"name": n, "datatype": kind, "shape": [-1, 1]} for n, kind in inputs]}
    told = (200, "application/json", json.dumps(tree).encode())
    return lambda method, path, body: told if method == "GET" else None


@pytest.mark.parametrize(
    ("kind", "column", "words"),
    [
        ("INT64", "wealth", r"'wealth' to be INT64, but the table has -?\d\.\d+ there"),
        ("INT32", "job", r"'job' to be INT32, but the table has '\w+' there"),
        ("FP32", "job", r"'job' to be FP32, but the table has '\w+' there"),
    ],
)
def test_cells_are_never_bent_to_the_type_that_a_server_wants(
    app, address, table, kind, column, words
):
    known = {"age": "INT64", "hours": "INT64", "wealth": "FP64", "sex": "BYTES", "job": "BYTES"}
    app.before = says(*(known | {column: kind}).items())
    with pytest.raises(BadModel, match=words):
        audit(f"oip:{address}#credit", table, **GIVEN)
    assert app.asked == 0


def test_the_type_of_a_column_does_not_hang_on_the_rows_of_a_request(app, address, table):
    seen = []
    app.before = lambda method, path, body: seen.append(body) if method == "POST" else None
    model = package.models.load(f"oip:{address}#credit", favorable=1)
    rows = table[COLUMNS]
    model.score(rows[rows["wealth"].isna()][:3])
    model.score(rows[rows["wealth"].notna()][:3])
    model.exchange.rest()
    types = [[(i["name"], i["datatype"]) for i in json.loads(body)["inputs"]] for body in seen]
    assert types[0] == types[1]
    assert ("wealth", "FP64") in types[0]


def test_a_placeholder_that_is_no_column_is_refused_before_anything_is_sent(
    app, address, table, tmp_path
):
    file = tmp_path / "service.toml"
    words = {"one": "-one", "per": "row", "name": "person", "what": "{agee}"}
    file.write_text(TEMPLATE.format(address=address, **words, path="p"))
    with pytest.raises(InvalidInput, match="placeholder 'agee', which is not a column"):
        audit(f"request:{file}", people(50), **GIVEN)
    assert app.requests == 0


@pytest.mark.parametrize("named", [False, True])
def test_personal_columns_are_sent_only_where_they_are_named(
    app, address, table, tmp_path, caplog, named
):
    columns = [*COLUMNS, "name"]
    text = TEMPLATE.format(
        address=address, one="", per="batch", name="people", what="{records}", path="result.*.p"
    )
    file = tmp_path / "service.toml"
    file.write_text(f"columns = {json.dumps(columns)}\n{text}" if named else text)
    seen = []
    app.before = lambda method, path, body: seen.append((body, caplog.text))
    known = table.assign(name=[f"Ada Canary{n}" for n in range(len(table))])
    few = {**GIVEN, "rate_rows": 10, "max_queries": 200}
    result = audit(f"request:{file}", known, **few)
    assert all((b"Canary" in body) is named for body, _ in seen)
    if not named:
        assert "'name' holds names" in seen[0][1]
        assert any("'name' holds names" in note for note in result.summary.notes)


def test_a_model_that_refuses_rows_without_a_name_is_not_sent_the_names(app, address, table):
    app.before = lambda method, path, body: (
        None if b"name" in body else (400, "text/plain", b"the name is missing")
    )
    known = table.assign(name=[f"Ada Canary{n}" for n in range(len(table))])
    with pytest.raises(BadModel, match="the name is missing"):
        audit(f"mlflow:{address}", known, **QUERIES)
    assert not app.asked


def test_seconds_hold_for_a_server_that_says_nothing(app, address, table):
    over = threading.Event()
    app.before = lambda *request: over.wait(60) and None
    try:
        with pytest.raises(Unreachable, match=f"before {address.removeprefix('http://')} had"):
            audit(f"mlflow:{address}", table, **GIVEN, max_seconds=0.5)
    finally:
        over.set()


def test_a_run_that_measured_nothing_after_the_first_look_ends_with_a_sentence(
    app, address, table, monkeypatch
):
    over, looked = threading.Event(), threading.Event()
    app.before = lambda *request: over.wait(60) and None if looked.is_set() else None
    look = conduct._hold_to_contract

    def then_silent(*given):
        steadiness = look(*given)
        looked.set()
        return steadiness

    monkeypatch.setattr(conduct, "_hold_to_contract", then_silent)
    try:
        with pytest.raises(Unreachable, match="had answered enough to measure"):
            audit(f"mlflow:{address}", table, **GIVEN, max_seconds=4)
    finally:
        over.set()
