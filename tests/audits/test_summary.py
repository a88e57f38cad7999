"""Examples of a summary: what flips them, and that files without it can still be read."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

import limi
from limi.audits import summary as summaries
from limi.audits.summary import Summary
from limi.search.check import check_rows
from limi.search.findings import Findings
from tests.report.fixtures import PICTURED
from tests.toy import MODEL, SCHEMA, Linear, grid, schema_of


def shown(model, schema):
    findings = Findings(schema)
    findings.add(check_rows(model, schema, grid(schema)))
    return summaries.examples(schema, findings.all(), most=100)


def test_examples_know_the_columns_that_flip_them():
    # From (0, 0) on, x0 = 0 needs 3 more to be favorable, which only both give; x0 = 2 needs 1.
    schema = schema_of((0, 4), (0, 1), (0, 1), protected=["x1", "x2"])
    examples = shown(Linear((1.0, 2.0, 1.0), -2.5), schema)
    known = {example.fields[0].value: example.flipped_by for example in examples}
    assert known == {"0": "x1+x2", "1": "x1", "2": "x1, x2"}


def test_one_protected_column_needs_no_cause():
    assert {example.flipped_by for example in shown(MODEL, SCHEMA)} == {""}


# -- each fact once ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def audited():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": rng.choice(["F", "M"], 400), "merit": rng.integers(0, 30, 400)})

    def approve(asked):
        return 1 / (1 + np.exp(15.3 - asked["merit"] - 4 * (asked["sex"] == "M")))

    return limi.audit(approve, frame, protected=["sex"], max_rows=600, rate_rows=200).summary


def leaves(tree, path=()):
    if isinstance(tree, dict | list):
        pairs = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for name, inner in pairs:
            yield from leaves(inner, (*path, name))
    else:
        yield path, tree


def test_a_stored_rate_stands_in_one_place(audited):
    tree = audited.as_dict()
    assert len(audited.rates) == 3
    for name, rate in audited.rates.items():
        near = [
            path
            for path, value in leaves({k: tree[k] for k in ("rates", "metrics")})
            if isinstance(value, float) and abs(value - rate.low) < 1e-5
        ]
        assert near == [("rates", name, "low")]


def test_what_is_derived_comes_back(audited):
    tree = json.loads(json.dumps(audited.as_dict()))
    assert "flip_rates" not in tree["metrics"]["individual"]
    assert Summary.from_dict(tree) == audited
    assert list(audited.metrics["individual"]["flip_rates"]) == list(audited.rates)


def test_the_schema_describes_what_is_written(audited):
    root = Path(__file__).parent.parent.parent
    done = subprocess.run(
        [sys.executable, "tools/summary_schema.py", "--check"],
        cwd=root,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    schema = json.loads((root / "docs" / "summary.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    check = jsonschema.Draft202012Validator(schema)
    for summary in (audited, PICTURED):
        tree = json.loads(json.dumps(summary.as_dict()))
        assert [error.message for error in check.iter_errors(tree)] == []
    assert not check.is_valid(tree | {"findings": "many"})
    assert not check.is_valid(tree | {"unheard": 1})
