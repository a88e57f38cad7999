"""Groups as tables: what cannot be said takes no room."""

import dataclasses

from limi.metrics._rate import Rate
from limi.metrics.group_lines import GroupLine
from limi.report import groups, html, text
from tests.report.fixtures import SUMMARIES

RATE = Rate(0.4, 0.31, 0.49, 120)


def summary(n_small):
    small = tuple(GroupLine(("land",), f"land {k}", k + 1) for k in range(n_small))
    lines = (GroupLine(("land",), "home", 120, RATE, None, RATE), *small)
    return dataclasses.replace(SUMMARIES["sex"], groups=lines)


def test_a_few_small_groups_have_a_line_each():
    (table,) = groups.tables(summary(3))
    assert [line[0] for line in table.lines] == ["home", "land 0", "land 1", "land 2"]
    assert table.unsaid == ()


def test_many_small_groups_are_folded_away_with_their_counts():
    (table,) = groups.tables(summary(40))
    assert [line[0] for line in table.lines] == ["home"]
    assert table.unsaid[-1] == ("land 39", "40")
    page = " ".join(html.render(summary(40)).split())
    assert "40 more groups, with fewer than 30 rows each" in page
    assert "<bdi>land 39</bdi> (40)" in page
    told = " ".join(text.render(summary(40)).split())
    assert "land home (n = 120): selection rate 40.0 % (31.0 to 49.0), accuracy 40.0 %" in told
    assert "40 more, too few to say" in told
