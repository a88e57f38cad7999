"""Many findings: those that do not fit into memory are checked, judged and written in parts.

What is shown of them rests on a fair sample, and says so; what is counted, and the file, on all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from limi.audits.conduct import Searched
from limi.audits.plan import Plan
from limi.audits.verify import Dropped, ask_again, count_bands, have_moved
from limi.metrics.row_naturalness import Judge
from limi.search import findings as ledger
from limi.search.findings import Found, Spool

__all__ = ["Many", "add_counts", "judge_found", "settle_many"]


@dataclass(frozen=True)
class Many:
    """Findings on disk that were checked again."""

    spool: Spool
    sample: Found
    dropped: Dropped
    judged_by: str  # how naturalness was judged; empty where it was not

    def __iter__(self) -> Iterator[Found]:
        return self.spool.parts()

    @property
    def note(self) -> str:
        """What the report says of them."""
        return (
            f"there are {len(self.spool):,} findings, more than fit in memory: all figures except "
            f"their number come from {len(self.sample):,} drawn at random; findings.parquet holds "
            "all of them"
        )


def settle_many(
    plan: Plan, searched: Searched, find_judge: Callable[[], Judge | None]
) -> Many | None:
    """Findings on disk that flip when the model is asked again, with the naturalness of both rows.

    None where they fit into memory. So it is where answers move: then each is asked again and
    again in the company of others, which takes all of them at once.
    """
    found = searched.run.findings
    if not found.is_spilled or searched.noisy or not searched.steadiness.steady:
        return None
    target, kept, judge = plan.problem.target, Spool(), find_judge()
    rounded = n_asked = 0
    for part in found.parts():
        again, flips = ask_again(target, part, plan.watch, plan.spread, plan.early, n_asked)
        if have_moved(target.rule, part[: len(again)], again, flips).any():
            return None
        rounded += int((~flips).sum())
        n_asked += len(again)
        confirmed = count_bands(plan, searched, again[flips])
        kept.append(confirmed if judge is None else judge_found(confirmed, judge))
        if len(again) < len(part):
            break
    dropped = Dropped(rounded=rounded, unasked=len(found) - n_asked)
    words = "" if judge is None else judge.words
    return Many(kept, kept.sample(ledger.MOST_IN_MEMORY), dropped, words)


def judge_found(found: Found, judge: Judge) -> Found:
    """Findings with the naturalness of both rows."""
    return dataclasses.replace(
        found,
        naturalness=judge.p_values(found.rows),
        partner_naturalness=judge.p_values(found.partner),
    )


def add_counts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Counts of parts as those of the whole."""
    total: dict[str, int] = {}
    for part in parts:
        for name, n in part.items():
            total[name] = total.get(name, 0) + n
    return total
