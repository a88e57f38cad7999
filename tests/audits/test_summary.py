"""Examples of a summary: what flips them, and that files without it can still be read."""

import json

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


def test_a_file_written_before_causes_were_kept_can_be_read():
    tree = json.loads(json.dumps(PICTURED.as_dict()))
    assert Summary.from_dict(tree) == PICTURED
    for example in tree["examples"]:
        del example["flipped_by"]
    assert {e.flipped_by for e in Summary.from_dict(tree).examples} == {""}
