"""`assert_flip_rate` on models whose rate is known."""

import pytest

from limi.errors import InvalidInput
from limi.testing import assert_flip_rate
from tests.changes.small import by_sex, people

OPTIONS = {
    "protected": ["sex"],
    "target": "ok",
    "favorable": "yes",
    "output": "score",
    "generator": None,
    "population": "real",
}


def test_a_fair_model_passes_and_the_answer_is_returned():
    answer = assert_flip_rate(by_sex(0), people(), at_most=0.02, **OPTIONS)
    assert answer.answer == "pass"
    assert answer.queries < 1_000


def test_an_unfair_model_fails_with_three_findings():
    with pytest.raises(AssertionError) as raised:
        assert_flip_rate(by_sex(20), people(), **OPTIONS)
    lines = str(raised.value).splitlines()
    assert lines[0].startswith("Fail: real_rate <= 1.0000000000 % is broken") or lines[
        0
    ].startswith("Fail: real_rate <= 1 %")
    assert sum("sex " in line and "score" in line for line in lines) == 3


def test_what_is_not_known_fails_unless_it_may_pass():
    frame = people()
    more = OPTIONS | {"at_most": float((frame["age"] < 20).mean()), "max_queries": 200}
    with pytest.raises(AssertionError, match=r"Inconclusive: .*(.|\n)*max_queries="):
        assert_flip_rate(by_sex(20), frame, **more)
    answer = assert_flip_rate(by_sex(20), frame, inconclusive="pass", **more)
    assert answer.answer == "inconclusive"


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"at_most": 1}, "a share between 0 and 1"),
        ({"at_most": 0}, "a share between 0 and 1"),
        ({"at_most": "1 %"}, "a share between 0 and 1"),
        ({"population": "people"}, "unknown population 'people'"),
        ({"inconclusive": "skip"}, "inconclusive is 'skip'"),
    ],
)
def test_bad_words_are_refused(more, says):
    with pytest.raises(InvalidInput, match=says):
        assert_flip_rate(by_sex(0), people(), **OPTIONS | more)
