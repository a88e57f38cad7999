"""A killed run goes on where it stopped, asks nothing twice, and finds the same."""

import numpy as np
import pytest

from limi.budget import Budget
from limi.engine import run
from limi.errors import CorruptStore
from limi.journal import Journal
from limi.methods.themis import Themis
from tests.toy import MODEL, SCHEMA, Linear, schema_of, task

WIDE = schema_of((0, 99), (0, 99), (0, 9), (1, 5), protected=["x3"])
WIDE_MODEL = Linear((0.03, -0.05, 0.1, 0.4), 0.2)


class Killed(BaseException):
    pass


def search(path, score):
    with Journal(path, score) as journal:
        here = task(WIDE, WIDE_MODEL, np.zeros((1, 4)), max_batch=3000)
        here.score = journal.score
        return run(Themis(), here, Budget(max_rows=20_000), 5), journal.replayed


def dying(after):
    calls = []

    def score(rows):
        calls.append(len(rows))
        if len(calls) > after:
            raise Killed
        return WIDE_MODEL(rows)

    return score


@pytest.mark.parametrize("cut", [0, 5, 100])
def test_a_resumed_run_equals_one_that_was_never_killed(tmp_path, cut):
    whole, _ = search(tmp_path / "whole", WIDE_MODEL)
    path = tmp_path / "journal"
    for after in (3, 6):
        with pytest.raises(Killed):
            search(path, dying(after))
    if cut:  # a kill may cut the last record short
        path.write_bytes(path.read_bytes()[:-cut])
    asked = []

    def counting(rows):
        asked.append(len(rows))
        return WIDE_MODEL(rows)

    resumed, replayed = search(path, counting)
    assert replayed > 0
    assert replayed + sum(asked) == whole.queries
    np.testing.assert_array_equal(resumed.findings.all().rows, whole.findings.all().rows)
    np.testing.assert_array_equal(resumed.findings.all().score, whole.findings.all().score)


def test_other_rows_than_logged_are_refused(tmp_path):
    with Journal(tmp_path / "j", MODEL) as journal:
        journal.score(np.zeros((2, 3)))
    with Journal(tmp_path / "j", MODEL) as journal, pytest.raises(CorruptStore, match="--force"):
        journal.score(np.ones((2, 3)))
    assert len(SCHEMA) == 3
