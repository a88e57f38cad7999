"""Every view over HTTP, held to what Python says of the same people."""

import csv
import io
import json
import re
import threading
import zipfile

import numpy as np
import pandas as pd
import pytest

import limi
import limi.testing
from limi.audits.reopen import Run, open_findings
from limi.explore.export import export
from limi.explore.opening import explore_problem, explore_result
from limi.explore.query import Query
from limi.explore.views.where import tell_level
from limi.metrics._rate import clopper_pearson
from limi.testing.pairs import Pairs
from tests.explore.conftest import Browser, decide, decide_evenly, people


def words(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.text)).replace("&lt;", "<")


def refs(answer):
    return re.findall(r'href="/person/([fprm]\d+)"', answer.text)


# -- findings --------------------------------------------------------------------------------


def test_findings_are_filtered_sorted_and_paged(browser, run):
    _, frame, found = open_findings(Run.at(run))
    assert f"{len(found):,} findings" in words(browser.get("/findings"))
    older = int((frame.age >= 50).sum())
    page = browser.get("/findings?c0.low=50")
    assert f"{older:,} of {len(found):,} findings" in words(page)
    ordered = browser.get("/findings?sort=severity&down=1")
    best = np.argsort(-frame.severity.to_numpy(), kind="stable")[:25]
    shown = [int(ref[1:]) for ref in refs(ordered)]
    np.testing.assert_allclose(frame.severity[shown], frame.severity[best])
    seen = []
    for page in range(1, 2 + len(found) // 25):
        seen += refs(browser.get(f"/findings?sort=c0&page={page}"))
    assert len(set(seen)) == len(found)


def test_facets_count_what_their_own_filter_leaves_out(browser, run):
    _, frame, _ = open_findings(Run.at(run))
    page = browser.get("/findings?c2=0").text
    for code, job in enumerate(browser.x.schema["job"].levels):
        n = int((frame.job == job).sum())
        line = re.search(rf'name="c2" value="{code}".*?class="figures">([\d,]+)', page, re.S)
        assert int(line[1].replace(",", "")) == n


def test_twenty_that_differ_are_drawn(browser):
    drawn = refs(browser.get("/findings?draw=1"))
    assert len(set(drawn)) == 20


def test_a_selection_is_exported(browser, run):
    _, frame, _ = open_findings(Run.at(run))
    older = frame[frame.age >= 50].reset_index(drop=True)
    text = pd.read_csv(io.BytesIO(browser.get("/export/csv?c0.low=50").content))
    parquet = pd.read_parquet(io.BytesIO(browser.get("/export/parquet?c0.low=50").content))
    for told in (text, parquet):
        assert set(told) == set(older)
        for name in older:
            if older[name].dtype.kind == "f":
                np.testing.assert_allclose(told[name], older[name])
            else:
                assert told[name].tolist() == older[name].tolist()


def test_a_spreadsheet_runs_nothing_of_a_csv_file():
    frame = people().rename(columns={"job": "=job+1"})
    frame["=job+1"] = "=1+" + frame["=job+1"]
    names = ["age", "hours", "=job+1", "sex"]
    options = {"protected": ["sex"], "output": "score", "method": "natural"}
    result = limi.audit(decide, frame[names], **options, max_rows=100, rate_rows=0)
    x = explore_result(result)
    told = export(x, "csv", Query({}))[2].decode()
    kept = pd.read_parquet(io.BytesIO(export(x, "parquet", Query({}))[2]))
    x.jobs.close()
    assert set(kept["=job+1"]) == set(result.findings["=job+1"])  # a file that nothing runs
    cells = [cell for line in csv.reader(io.StringIO(told)) for cell in line]
    assert "'=job+1" in cells
    assert not [cell for cell in cells if cell.startswith("=")]


def test_an_exported_test_asks_its_pairs(opened, tmp_path):
    x = opened()
    x.model_uri = "python:model.py:decide"
    answer = Browser(x).get("/export/pytest?c0.low=40")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert sorted(archive.namelist()) == ["fairness_pairs.parquet", "test_fairness.py"]
        (tmp_path / "pairs.parquet").write_bytes(archive.read("fairness_pairs.parquet"))
        assert '"python:model.py:decide"' in archive.read("test_fairness.py").decode()
    pairs = limi.testing.read_pairs(tmp_path / "pairs.parquet")
    assert isinstance(pairs, Pairs)
    asked = pairs.ask(decide)
    assert len(asked) == len(pairs) > 0
    assert len(pairs.ask(decide_evenly)) == 0


# -- a person --------------------------------------------------------------------------------


def test_a_changed_cell_is_answered_with_the_model_s_score(browser):
    person = browser.x.who("f0")
    answer = browser.post("/person/f0/ask", {"cell-1": "55"})
    row = dict(zip(browser.x.schema.names, browser.x.schema.columns, strict=True))
    cells = {
        name: [column.show(value) if column.kind != "numerical" else value]
        for (name, column), value in zip(row.items(), person.row, strict=True)
    }
    expected = decide(pd.DataFrame({**cells, "hours": [55]}))[0]
    told = float(re.search(r'data-answer="([\d.]+)"', answer.text)[1])
    assert told == pytest.approx(expected, abs=1e-8)
    assert "hours" in words(answer)
    assert "Changed against the start" in words(answer)


def test_without_a_script_a_form_gives_a_whole_page(browser):
    answer = browser.post("/person/f0/ask", part=False)
    assert answer.text.startswith("<!DOCTYPE html>")
    assert "This decision flips" in words(answer)


@pytest.mark.parametrize(("action", "goal"), [("flip", True), ("steady", False)])
def test_the_nearest_person_is_one_and_can_be_met(browser, action, goal):
    x = browser.x
    start = "r1" if goal else "f0"
    answer = browser.post(f"/person/{start}/{action}")
    if "already" in answer.text:
        return
    ref = refs(answer)[0]
    assert x.ask_person(x.who(ref).row).flips == goal


def test_the_walk_alike_and_twins_are_answered(browser):
    walk = browser.post("/person/f0/walk")
    assert "age" in words(walk)
    for ref in refs(walk):
        turned = browser.x.ask_person(browser.x.who(ref).row)
        start = browser.x.ask_person(browser.x.who("f0").row)
        assert turned.own.told.decision != start.own.told.decision
    alike = refs(browser.post("/person/r7/alike"))
    assert alike[0] == "r7"
    assert len(alike) == 12
    assert "twins are decided differently" in words(browser.post("/person/f0/twins"))


def test_a_cell_that_cannot_be_is_a_sentence(browser):
    answer = browser.post("/person/f0/ask", {"cell-0": "1000"})
    assert answer.status_code == 400
    assert "outside the range of column 'age'" in answer.text.replace("&#39;", "'")


# -- regions, map, two models ----------------------------------------------------------------


def test_a_region_is_looked_at_and_counted(browser):
    x = browser.x
    answer = browser.post("/where/look", {"c0.low": "45", "c0.high": "55"})
    n, low, high = (
        float(re.search(rf'data-{name}="([\d.e-]+)"', answer.text)[1])
        for name in ("n", "low", "high")
    )
    from limi import generators

    rng = np.random.default_rng(99)
    rows = generators.draw(x.generator(), 60_000, rng, x.schema)[0]
    rows = rows[(rows[:, 0] >= 45) & (rows[:, 0] <= 55)]
    flips = x.check(x.asker, rows).flips
    least, most = clopper_pearson(int(flips.sum()), len(flips), 0.9999)
    assert low <= most
    assert least <= high
    assert n > 0
    assert "97.5 %" in words(answer)
    assert "99.17 %" in words(browser.post("/where/look", {"c2": "0"}))
    page = words(browser.get("/where?c0.low=45"))
    assert "age at least 45" in page
    assert "look 3, held to 99.58 %" in page
    assert [e["look"] for e in x.record.entries if e.get("ask") == "region"] == [1, 2]


@pytest.mark.parametrize(
    ("form", "sentence"),
    [({}, "needs a condition"), ({"c3": "0"}, "is protected"), ({"c2": "7"}, "is not a value")],
)
def test_a_region_that_makes_no_sense_is_a_sentence(browser, form, sentence):
    answer = browser.post("/where/look", form)
    assert answer.status_code == 400
    assert sentence in answer.text


@pytest.mark.parametrize("query", ["x=c0&y=c1&people=real", "x=c2&y=c0", "x=latent", "x=c2&y=c3"])
def test_everybody_stands_on_the_map(browser, query):
    answer = browser.settle(browser.get(f"/map?{query}"))
    told = [
        tuple(int(n.replace(",", "")) for n in pair)
        for pair in re.findall(r"<title>([\d,]+) people, ([\d,]+) findings</title>", answer.text)
    ]
    assert sum(found for _, found in told) == len(browser.x.found)
    assert sum(n for n, _ in told) == (len(browser.x.rows) if "real" in query else 20_000)
    assert browser.get(f"/person/{refs(answer)[0]}").status_code == 200


def test_people_of_earlier_answers_stay_known_however_often_a_map_is_drawn(browser):
    kept = browser.x.keep(browser.x.rows[0] + 0.5, "Somebody")
    for _ in range(12):
        answer = browser.settle(browser.get("/map?x=latent"))
    assert browser.get(f"/person/{kept}").status_code == 200
    people = [ref for ref in refs(answer) if ref.startswith("m")]
    assert browser.get(f"/person/{people[-1]}").status_code == 200
    assert browser.settle(browser.get("/map?x=latent")).text == answer.text


# -- record ----------------------------------------------------------------------------------


def test_every_question_stands_in_the_record(browser):
    browser.post("/person/f0/ask")
    browser.post("/person/f0/walk")
    browser.post("/person/f1/bookmark", {"note": "see this", "cell-0": "44"})
    lines = [json.loads(line) for line in browser.x.record.path.read_text().splitlines()]
    assert [line.get("ask", "bookmark") for line in lines] == ["person", "walk", "bookmark"]
    assert lines[0]["cells"]["sex"] in ("F", "M")
    assert lines[2]["bookmark"] == "see this"
    assert lines[2]["cells"]["age"] == 44
    assert "see this" in words(browser.get("/record"))
    number = browser.x.record.bookmarks[0].number
    gone = browser.post("/record/forget", {"number": str(number)})
    assert "see this" not in words(gone).partition("Questions")[0]


def test_a_number_that_was_given_twice_does_not_end_the_record(browser):
    kept = browser.x.bookmark(browser.x.rows[0], browser.x.rows[0], "see this")
    browser.x.record.entries.append({"number": kept["number"], "ask": "region"})
    assert "see this" in words(browser.get("/record"))


# -- bounds ----------------------------------------------------------------------------------


def test_read_only_asks_nothing_and_does_not_open_the_model(run, table, tmp_path):
    from limi.explore.opening import explore_run

    x = explore_run(run, table=table, read_only=True, record=tmp_path / "r.jsonl")
    browser = Browser(x)
    assert "read-only" in words(browser.get("/findings"))
    assert browser.get("/person/f0").status_code == 200
    answer = browser.post("/person/f0/ask")
    assert answer.status_code == 400
    assert "read-only" in answer.text
    assert len(refs(browser.post("/person/f0/alike"))) == 12
    assert x.meter.asked == 0


def test_questions_of_a_session_are_bounded_and_in_sight(opened):
    browser = Browser(opened(max_queries=100))
    begun = browser.x.meter.asked
    answer = browser.post("/person/f0/ask")
    assert answer.headers["x-limi-asked"] == f"{begun + 2} of 100"
    answer = browser.post("/person/r5/walk")
    assert "of the session&#39;s 100 are left" in answer.text
    assert browser.x.meter.asked <= 100
    assert f"{browser.x.meter.asked} of 100" in words(browser.get("/findings"))


def test_opening_a_run_keeps_to_the_questions_of_the_session(opened):
    assert opened(max_queries=10).meter.asked == 10
    assert opened(max_queries=1).meter.asked == 0


def test_hidden_cells_of_findings_are_neither_shown_nor_told_by_filters(opened):
    x = opened()
    x.hidden = ("age",)
    x.model_uri = "python:model.py:decide"
    browser = Browser(x)
    whole = browser.get("/findings")
    lines = re.findall(r"<tr>.*?</tr>", whole.text.partition("<tbody>")[2], re.S)
    assert lines
    assert all("<bdi>hidden</bdi>" in line for line in lines)
    for query in ("sort=c0", "c0.low=50"):
        assert refs(browser.get(f"/findings?{query}")) == refs(whole)
        assert refs(browser.get(f"/people?{query}")) == refs(browser.get("/people"))
    told = pd.read_csv(io.BytesIO(browser.get("/export/csv?c0.low=50").content))
    assert len(told) == len(x.found)
    assert set(told.age) == {"hidden"}
    assert not told.hours.astype(str).eq("hidden").any()
    assert "cells are hidden" in browser.get("/export/pytest").text


def test_who_has_no_session_is_told_nothing_of_the_model(opened):
    browser = Browser(opened())
    browser.x.model_name = "a-name-of-ours"
    known = browser.get("/findings")
    assert "a-name-of-ours" in known.text
    assert "x-limi-asked" in known.headers
    browser.client.cookies.clear()
    for path in ("/findings", "/", "/?token=x", "/nowhere", "/export/csv"):
        answer = browser.get(path)
        assert answer.status_code in (403, 404)
        assert "a-name-of-ours" not in answer.text
        assert "questions asked" not in answer.text
        assert "x-limi-asked" not in answer.headers


def test_a_question_that_nobody_looks_at_is_given_up_too():
    from limi.explore.jobs import Jobs

    now, go, begun = [0.0], threading.Event(), threading.Event()
    jobs = Jobs(patience=5, clock=lambda: now[0])

    def wait(job):
        job.waiting_since = now[0]
        begun.set()
        go.wait(20)

    first = jobs.start("first", wait)
    assert begun.wait(20)
    now[0] = 6.0
    jobs.start("second", lambda job: None)
    assert first.state == "failed"
    go.set()
    jobs.close()


def test_a_model_that_raises_is_a_sentence_and_not_the_end(opened):
    broken = threading.Event()

    def moody(frame):
        if broken.is_set():
            raise RuntimeError("out of <i>sorts</i>")
        return decide(frame)

    browser = Browser(opened(model=moody))
    broken.set()
    answer = browser.post("/person/f0/ask")
    assert "the model raised RuntimeError: out of &lt;i&gt;sorts" in answer.text
    broken.clear()
    assert "This decision flips" in words(browser.post("/person/f0/ask"))


def test_a_slow_model_is_waited_for_in_sight_and_can_be_cancelled(opened, monkeypatch):
    from limi.explore.views import base

    monkeypatch.setattr(base, "PATIENCE", 0.01)
    slow, go = threading.Event(), threading.Event()

    def sleepy(frame):
        if slow.is_set():
            go.wait(20)
        return decide(frame)

    browser = Browser(opened(model=sleepy))
    slow.set()
    waiting = browser.client.post(
        "/person/f0/ask", data={"token": browser.token}, headers={"X-Limi": "part"}
    )
    job = re.search(r'data-job="(\d+)"', waiting.text)[1]
    assert "Asking the model" in waiting.text
    assert browser.get("/findings").status_code == 200  # all else goes on
    cancelled = browser.client.post(f"/job/{job}/cancel", data={"token": browser.token})
    assert "cancelled" in cancelled.text
    go.set()
    slow.clear()
    assert "This decision flips" in words(browser.post("/person/f0/ask"))


def test_a_bookmark_does_not_hold_up_the_page(opened, monkeypatch):
    from limi.explore.views import base

    monkeypatch.setattr(base, "PATIENCE", 0.01)
    slow, go = threading.Event(), threading.Event()

    def sleepy(frame):
        if slow.is_set():
            go.wait(20)
        return decide(frame)

    browser = Browser(opened(model=sleepy))
    slow.set()
    form = {"token": browser.token, "note": "see this"}
    waiting = browser.client.post("/person/f0/bookmark", data=form, headers={"X-Limi": "part"})
    assert "data-job" in waiting.text
    go.set()
    assert "Bookmarked" in browser.settle(waiting).text
    assert [mark.note for mark in browser.x.record.bookmarks] == ["see this"]


def test_questions_of_others_are_not_counted_as_one_s_own(opened, monkeypatch):
    x = opened()
    ask = x.asker.target.score

    class Busy:
        rule = x.asker.rule

        @staticmethod
        def score(rows):
            x.meter.take(50)  # somebody else asks meanwhile
            return ask(rows)

    monkeypatch.setattr(x.asker, "target", Busy)
    job = x.jobs.start("a person", lambda job: x.ask_person(x.rows[7], None, job))
    assert job.wait(60)
    assert x.record.entries[-1]["queries"] == job.result.queries == 2


def test_a_model_that_never_answers_is_given_up(opened, monkeypatch):
    from limi.explore.views import base

    monkeypatch.setattr(base, "PATIENCE", 0.01)
    slow, go = threading.Event(), threading.Event()

    def sleepy(frame):
        if slow.is_set():
            go.wait(20)
        return decide(frame)

    browser = Browser(opened(model=sleepy, timeout=0.05))
    slow.set()
    answer = browser.post("/person/f0/ask")
    assert "has not answered for 0.05 seconds" in answer.text
    go.set()


def test_fifty_requests_at_once_are_answered(browser):
    from concurrent.futures import ThreadPoolExecutor

    paths = ["/findings?c0.low=30", "/person/f1", "/people", "/record", "/where"] * 10
    with ThreadPoolExecutor(50) as pool:
        told = list(pool.map(lambda path: browser.get(path).status_code, paths))
    assert told == [200] * 50


# -- other kinds of decision -------------------------------------------------------------------


KINDS = {
    "class": (
        {"decision": "class"},
        lambda s: np.array(["no", "maybe", "yes"])[np.digitize(s, [0.3, 0.7])],
    ),
    "bands": ({"decision": "bands = 300, 600"}, lambda s: 1000 * s),
    "difference": ({"decision": "difference > 50"}, lambda s: 1000 * s),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_decision_can_be_explored(kind, table):
    from limi.audits.problem import prepare

    options, shape = KINDS[kind]
    frame = table.assign(ok=shape(decide(table)))
    problem = prepare(lambda f: shape(decide(f)), frame, protected=["sex"], target="ok", **options)
    browser = Browser(explore_problem(problem))
    told = words(browser.post("/person/r30/ask"))
    assert "Decided" in told
    near = browser.post("/person/r30/flip")
    assert near.status_code == 200
    for ref in refs(near):
        assert browser.x.ask_person(browser.x.who(ref).row).flips
    assert "flip" in words(browser.post("/where/look", {"c0.low": "45"}))
    assert browser.get("/").status_code == 200


def test_a_model_that_never_sees_the_group_is_asked_about_twins(table):
    from limi.audits.problem import prepare

    problem = prepare(
        lambda f: decide(f.assign(sex="M")),
        table,
        protected=["sex"],
        target="ok",
        favorable=1,
        output="score",
        drop=["sex"],
    )
    browser = Browser(explore_problem(problem))
    assert "ask for twins" in words(browser.get("/person/r3"))
    assert "twins are decided differently" in words(browser.post("/person/r30/twins"))
    assert "same under every protected value" in words(browser.post("/person/r30/ask"))


def test_a_level_has_the_digits_that_matter():
    assert tell_level(0.975) == "97.5 %"
    assert tell_level(1 - 0.05 / 6) == "99.17 %"
    assert tell_level(1 - 0.05 / (1000 * 1001)) == "99.999995 %"


def test_the_address_of_a_region_says_all_of_it(opened):
    import dataclasses

    from limi.explore.pages import Pages
    from limi.explore.query import Query, read_pairs
    from limi.metrics.regions import Condition, Region

    x = opened(read_only=True)
    pages = Pages(x)
    columns = [dataclasses.replace(column, missing=True) for column in x.schema.columns]
    for condition in (
        Condition(columns[0], 0, low=30, high=45, missing=True),
        Condition(columns[0], 0, low=30),
        Condition(columns[2], 2, codes=(1.0,), missing=True),
        Condition(columns[0], 0, codes=(), missing=True),
    ):
        address = pages._href_of(Region((condition,)))
        told = x.region_of(pages._conditions(Query(read_pairs(address.partition("?")[2]))))
        cells = np.array([20.0, 33.0, 1.0, np.nan])
        back = told.conditions[0]
        assert back.mask_cells(cells).tolist() == condition.mask_cells(cells).tolist()
