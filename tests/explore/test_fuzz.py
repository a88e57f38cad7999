"""A few hundred hostile requests; `make fuzz` sends ten thousand."""

from tests.explore.conftest import Browser
from tests.explore.fuzz import digests, fuzz


def test_hostile_requests_end_in_sentences_and_touch_nothing(opened, run):
    before = digests(run)
    told, wrong = fuzz(Browser(opened(max_queries=3_000)), 250, seed=1)
    assert wrong == []
    assert told[200] > 30
    assert told[400] > 10
    assert digests(run) == before
