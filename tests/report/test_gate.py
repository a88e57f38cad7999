"""The answer of a gate in files that CI systems read."""

import dataclasses
import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pandas as pd
import pytest

from limi.gates import Answer, gate
from limi.report import gate as page
from limi.report import github, junit, sarif
from limi.table.schema import Column, Schema

# The public schema of OASIS without its descriptions.
SARIF = json.loads(Path(__file__).with_name("sarif-2.1.0.schema.json").read_text())
NASTY = 'a\x1b[31m\x00\ufffe"<&>|*%:,\n::error::b'


def make(race="race"):
    schema = Schema(
        (
            Column(name="u", kind="numerical", low=0, high=99, step=1),
            Column(name="sex", kind="categorical", levels=("f", "m")),
            Column(name=race, kind="categorical", levels=("a", "b")),
        )
    )
    people = {"u": np.arange(100), "sex": ["f", "m"] * 50, race: ["a", "b", "b", "a"] * 25}

    def model(frame):
        male = (frame["sex"] == "m").to_numpy()
        return np.where(frame["u"].to_numpy() < 30, np.where(male, 0.8, 0.2), 0.1)

    def ask(*rules, **more):
        return gate(
            model,
            pd.DataFrame(people),
            list(rules),
            protected=["sex", race],
            schema=schema,
            generator=None,
            output="score",
            redact=False,  # `u` counts the rows, which looks like identifiers
            **more,
        )

    return ask


@pytest.fixture(scope="module")
def failed():
    return make()("uniform_worst_region_rate <= 20 %", max_queries=9_000)


@pytest.fixture(scope="module")
def passed():
    return make()("uniform_rate <= 60 %", "uniform_score_gap_p50 <= 0.3")


@pytest.fixture(scope="module")
def unknown():
    return make()("uniform_rate <= 30 %", max_queries=500)


def cases(xml):
    root = ElementTree.fromstring(xml.encode())
    return root, {case.get("name"): case for case in root.iter("testcase")}


def test_an_example_names_the_column_that_flips_it_first(failed):
    for found in failed.examples:
        line = page.example(found, failed)
        assert line.startswith("sex ")
        assert " (by sex): score " in line


def test_a_rule_is_a_test_case_with_its_numbers(failed):
    root, found = cases(junit.render(failed))
    assert list(found) == ["uniform_worst_region_rate <= 20 %", "sex", "race"]
    case = found["uniform_worst_region_rate <= 20 %"]
    numbers = {one.get("name"): one.get("value") for one in case.iter("property")}
    assert float(numbers["low"]) > float(numbers["limit"]) == 0.2
    assert int(numbers["queries"]) == failed.rules[0].queries
    assert "u at most" in case.find("failure").get("message")
    assert (root.get("tests"), root.get("failures")) == ("3", "2")


def test_a_protected_column_fails_where_it_has_a_part_in_it(failed, passed):
    _, found = cases(junit.render(failed))
    assert "flip if sex alone changes" in found["sex"].find("failure").text
    assert found["race"].find("failure") is None
    numbers = {one.get("name"): one.get("value") for one in found["race"].iter("property")}
    assert numbers["uniform rows that flip by it alone"] == "0"
    root, _ = cases(junit.render(passed))
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("4", "0", "0")


def test_not_knowing_is_skipped_unless_it_counts_as_something(unknown):
    assert unknown.answer == Answer.INCONCLUSIVE
    counts = {}
    for choice in (None, "pass", "fail"):
        root, _ = cases(junit.render(unknown, choice))
        counts[choice] = (root.get("failures"), root.get("skipped"))
    assert counts == {None: ("0", "3"), "pass": ("0", "0"), "fail": ("3", "0")}


def test_names_that_xml_cannot_hold_are_spelled():
    result = make(NASTY)("uniform_rate <= 1 %")
    text = junit.render(result)
    _, found = cases(text)
    assert 'a\\x1b[31m\\x00\\ufffe"<&>|*%:,\\n::error::b' in found
    assert "\x1b" not in text + page.render_markdown(result) + sarif.render(result, NASTY)
    jsonschema.Draft7Validator(SARIF).validate(json.loads(sarif.render(result, NASTY)))


@pytest.mark.parametrize("answer", ["failed", "passed", "unknown"])
def test_sarif_is_as_its_public_schema_says(answer, request):
    tree = json.loads(sarif.render(request.getfixturevalue(answer), "limi.toml"))
    jsonschema.Draft7Validator(SARIF).validate(tree)
    (run,) = tree["runs"]
    assert run["properties"]["answer"] == {"unknown": "inconclusive"}.get(answer, answer[:4])
    assert bool(run["results"]) == (answer == "failed")


def test_broken_rules_and_regions_are_results_with_ids_that_stay(failed):
    text = '[gate]\nmax_queries = 3\n"Uniform worst-region rate" = "<= 20 %"\n'
    (run,) = json.loads(sarif.render(failed, "a b/limi.toml", text))["runs"]
    results = run["results"]
    assert [one["ruleId"] for one in results] == [
        "limi/uniform_worst_region_rate",
        *["limi/region"] * (len(results) - 1),
    ]
    assert len(results) >= 2
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert all(rules[one["ruleIndex"]] == one["ruleId"] for one in results)
    place = results[0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "a%20b/limi.toml"}, "region": {"startLine": 3}}
    # Another build asks other rows and finds other numbers, and yet it is the same alert.
    judged = failed.rules[0]
    other = dataclasses.replace(
        failed,
        queries=1,
        rules=(dataclasses.replace(judged, estimate=judged.estimate._replace(value=0.5)),),
    )
    (again,) = json.loads(sarif.render(other, "limi.toml"))["runs"]
    prints = [one["partialFingerprints"] for one in results]
    assert [one["partialFingerprints"] for one in again["results"]] == prints
    assert len({one["limi/v1"] for one in prints}) == len(prints)


def test_the_same_gate_gives_the_same_bytes():
    first, again = (make()("uniform_rate <= 1 %") for _ in range(2))
    assert junit.render(first) == junit.render(again)
    assert sarif.render(first, "limi.toml") == sarif.render(again, "limi.toml")
    assert page.render_markdown(first) == page.render_markdown(again)


def test_markdown_says_the_answer_the_rules_and_whom_it_is_about(failed, passed, unknown):
    text = page.render_markdown(failed)
    assert text.startswith("### Fairness gate: failed\n")
    assert "| FAIL | uniform\\_worst\\_region\\_rate &lt;= 20 % |" in text
    assert "Decisions that flip:" in text
    assert "passed" in page.render_markdown(passed)
    assert "Decisions that flip" not in page.render_markdown(passed)
    assert "the budget of queries is spent" in page.render_markdown(unknown)


def test_annotations_are_one_line_each_and_none_where_all_is_well(failed, passed, unknown):
    (line,) = github.annotate(failed, "a,b:c.toml")
    assert line.startswith(
        "::error file=a%2Cb%3Ac.toml,title=Fairness gate%3A uniform_worst_region_rate <= 20 %25::"
    )
    assert github.annotate(passed, "limi.toml") == []
    (warning,) = github.annotate(unknown, "limi.toml")
    assert warning.startswith("::warning file=limi.toml")
    for line in github.annotate(make(NASTY)("uniform_rate <= 1 %"), "limi.toml"):
        assert "\n" not in line
        assert line.count("::") == 2
