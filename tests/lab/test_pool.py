"""Jobs of a study fail alone."""

import pytest

from lab.pool import Failure, Pool
from limi.errors import InvalidInput


def squared(job):
    if job == 3:
        raise InvalidInput("three is no good")
    if job == 5:
        raise RuntimeError("five")
    return job * job


@pytest.mark.parametrize("workers", [1, 2])
def test_jobs_fail_alone(workers):
    jobs = [1, 2, 3, 4, 5, 6]
    with Pool(squared, workers) as pool:
        got = dict(pool.each(jobs))
        assert dict(pool.each([9])) == {9: 81}
    assert {job: got[job] for job in (1, 2, 4, 6)} == {1: 1, 2: 4, 4: 16, 6: 36}
    assert got[3] == Failure("three is no good", "InvalidInput")
    assert got[5].kind == "RuntimeError"
    assert "five" in got[5].why
