"""All findings inside the page."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import limi
from limi.report import html
from limi.report.ledger import as_json, ledger_of
from tests.report.fixtures import SEX

NASTY = "</script><script>alert(1)</script>\u2028&<!--"


@pytest.fixture(scope="module")
def result():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m", NASTY], 300),
            "age": rng.integers(18, 70, 300).astype(float),
            "city": rng.choice(["a", "b", NASTY], 300),
        }
    )
    frame.loc[::9, "age"] = np.nan
    return limi.audit(
        lambda given: 0.3 + 0.4 * (given["sex"] == "f") + 0.001 * given["age"].fillna(30),
        frame,
        protected="sex",
        method="natural",
        max_rows=400,
        rate_rows=50,
    )


def ledger(result, **given):
    return ledger_of(result.problem.schema, result.found, result.summary, **given)


def held(page):
    (text,) = re.findall(r'id="ledger-data">(.*?)</script>', page, re.DOTALL)
    return json.loads(text)


def test_every_finding_is_in_the_page_the_first_to_look_at_in_front(result):
    told = held(html.render(result.summary, ledger(result)))
    columns = {column["title"]: column for column in told["columns"]}
    assert told["total"] == result.summary.findings == len(columns["row"]["cells"])
    assert sorted(columns["row"]["cells"]) == list(range(told["total"]))
    ranked = result.ranked()
    shown = [columns["city"]["levels"][k] for k in columns["city"]["cells"]]
    assert shown == [text.replace("\u2028", "\\u2028") for text in ranked["city"]]
    ages = [None if np.isnan(age) else age for age in ranked["age"]]
    assert columns["age"]["cells"] == ages
    changed = {columns["sex"]["levels"][k] for k in columns["sex"]["cells"]}
    assert all("\u2192" in text for text in changed)


def test_no_cell_can_end_the_element_that_holds_it(result):
    page = html.render(result.summary, ledger(result))
    assert page.count("<script") == 2
    assert "alert(1)" in json.dumps(held(page))
    assert "<" not in as_json({"a": NASTY})


def test_very_many_findings_are_cut_and_that_is_said(result):
    few = ledger(result, most=7)
    assert len(few["columns"][0]["cells"]) == 7
    assert few["cut"] == f"the first 7 of {result.summary.findings:,}"
    assert "findings.parquet has all of them" in html.render(result.summary, few)


def test_five_thousand_findings_are_under_two_megabytes():
    rng = np.random.default_rng(0)
    texts = [f"a long level of a column {k}" for k in range(40)]
    columns = [{"title": "row", "cells": list(range(5_000))}]
    for place in range(24):
        codes = rng.integers(0, 40, 5_000).tolist()
        columns.append({"title": f"column {place}", "levels": texts, "cells": codes})
    for place in range(12):
        numbers = rng.random(5_000).round(4).tolist()
        columns.append({"title": f"number {place}", "cells": numbers})
    page = html.render(SEX, {"total": 5_000, "columns": columns, "cut": ""})
    assert len(page.encode()) < 2_000_000
