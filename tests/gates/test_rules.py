"""What a person may write as a rule, and the sentence for everything else."""

import pytest

from limi.errors import InvalidInput
from limi.gates import METRICS, is_metric, parse_rules


def one(text):
    (rule,) = parse_rules(text)
    return rule


@pytest.mark.parametrize(
    ("text", "measure", "population", "limit"),
    [
        ("natural_rate <= 1 %", "rate", "natural", 0.01),
        ("real_rate at most 2.5 percent", "rate", "real", 0.025),
        ("held-out rate ≤ 1 in 200", "rate", "held-out", 0.005),
        ("uniform_rate < 3%", "rate", "uniform", 0.03),
        ("worst_region_rate <= 5 %", "worst_region_rate", "natural", 0.05),
        ("real worst region rate <= 5 %", "worst_region_rate", "real", 0.05),
        ("SPD <= 0.1", "spd", "people", 0.1),
        ("spd <= 10 points", "spd", "people", 0.1),
        ("score gap p99 <= 0.2", "score_gap", "natural", 0.2),
        ("real_score_gap_p99.5 <= 20 %", "score_gap", "real", 0.2),
    ],
)
def test_a_rule_says_what_is_bound_of_whom_and_how_much(text, measure, population, limit):
    rule = one(text)
    assert (rule.measure, rule.population, rule.limit) == (measure, population, limit)
    assert not rule.against_baseline


def test_a_percentile_is_part_of_the_name():
    assert one("score_gap_p90 <= 0.2").percentile == 90
    assert one("score_gap_p99.9 <= 0.2").percentile == 99.9


def test_a_rule_may_ask_for_a_rate_that_is_lower_than_the_baseline_s():
    rule = one("natural_rate better than baseline by 0.2 points")
    assert (rule.against_baseline, rule.limit) == (True, -0.002)
    with pytest.raises(
        InvalidInput, match=r"write 'natural_rate better than baseline by 0.2 points'"
    ):
        one("natural_rate better than baseline")


def test_a_rule_may_compare_with_an_earlier_run():
    rule = one("natural_rate no worse than baseline by 0.2 points")
    assert (rule.against_baseline, rule.limit) == (True, 0.002)


def test_rules_come_as_texts_or_by_name():
    by_name = parse_rules(
        {"natural_rate": ["<= 1 %", "no worse than baseline by 1 point"], "spd": 0.2}
    )
    assert [rule.text for rule in by_name] == [
        "natural_rate <= 1 %",
        "natural_rate no worse than baseline by 1 point",
        "spd <= 0.2",
    ]


def test_every_name_that_is_offered_is_understood():
    for name in METRICS:
        assert is_metric(name)
        sign = ">=" if name == "impact_ratio" else "<="
        assert one(f"{name} {sign} 3 %").metric == name


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("natural_rate <= 1", "has no unit.*write 'natural_rate <= 1 %'"),
        ("natural_rate <= 0.01", "write 'natural_rate <= 1 %' or 'natural_rate <= 0.01 %'"),
        ("spd <= 1", "has no unit.*write 'spd <= 1 points'"),
        ("natural_rat <= 1 %", "did you mean 'natural_rate'"),
        ("rate <= 1 %", "did you mean 'real_rate'"),
        ("accuracy <= 1 %", "which a gate does not measure; .*nown: held_out_rate"),
        ("natural_rate >= 1 %", "cannot be read; write 'natural_rate <= 1 %'"),
        ("natural_rate", "cannot be read"),
        ("", "does not measure"),
        ("natural_rate <= 1,5 %", r"has a comma in 1,5; write 1\.5$"),
        ("natural_rate <= 1 in 1,000", r"has a comma in 1,000; write 1\.000 or 1000$"),
        ("natural_rate no worse than baseline by 0,2 points", r"write 0\.2$"),
        ("natural_rate <= 1 apple", "has the unit 'apple'"),
        ("natural_rate <= 0 %", "limit of 0 %"),
        ("natural_rate <= 100 %", "limit of 100 %"),
        ("natural_rate <= 1 in 0", "divides by zero"),
        ("score_gap_p0 <= 0.1", "percentile of 0"),
        ("natural_rate no worse than baseline", "leaves no margin"),
        ("natural_rate no worse than baseline by 0.2 %", "write .* by 0.2 points"),
        ("natural_rate no worse than baseline by 100 points", "the whole scale"),
        ("spd no worse than baseline by 1 point", "keeps only rates"),
        ("spd <= 0.1 \x1b[31m", "has the unit"),
    ],
)
def test_anything_else_is_refused_in_one_sentence(text, says):
    with pytest.raises(InvalidInput, match=says):
        parse_rules(text)


@pytest.mark.parametrize("limit", [True, None, {}, 0.01])
def test_a_limit_by_name_is_text_with_a_unit(limit):
    with pytest.raises(InvalidInput, match="natural_rate"):
        parse_rules({"natural_rate": limit})


def test_a_gate_has_a_rule_and_none_twice():
    with pytest.raises(InvalidInput, match="has no rule"):
        parse_rules([])
    with pytest.raises(InvalidInput, match="two rules bound natural_rate"):
        parse_rules(["natural_rate <= 1 %", "natural rate <= 2 %"])
