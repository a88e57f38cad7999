"""Which of several repairs to take, and the reason for or against each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from limi.errors import spell
from limi.metrics.individual import rate_of
from limi.repairs._result import Tried
from limi.repairs._terms import Terms
from limi.repairs._verify import AS_USUAL

__all__ = ["recommend"]

_SAME_ACCURACY = 0.001  # losses that lie nearer than this count as equal


def recommend(
    tried: Sequence[Tried], max_accuracy_loss: float, terms: Terms = AS_USUAL
) -> tuple[list[Tried], str | None, tuple[str, ...]]:
    """The repairs with the reason for or against each, the one to take, and those that may be as
    good.

    Of those that make flips rarer and lose no more accuracy than is allowed: the one with fewest
    flips, then the one that loses least accuracy (losses within 0.1 points are equal), then the one
    that asks least for an answer, then the quickest to make. Others with as few flips may be as
    good where they were refused for their loss alone, and that may be chance.
    """
    able = [one for one in tried if one.verdict.word in ("removed", "reduced")]
    if not able:
        words = "not recommended: "
        return (
            [replace(one, why=words + _word(one, max_accuracy_loss, terms)) for one in tried],
            None,
            (),
        )
    least = min(map(_flips, able))
    fewest = [one for one in able if _flips(one) <= least]
    lost = min(one.loss.value for one in fewest)
    near = [one for one in fewest if one.loss.value <= lost + _SAME_ACCURACY]
    best = min(near, key=lambda one: (one.asked, one.seconds))
    # Refused for a cost that may be chance, though as few flips are left.
    close = tuple(
        one.how
        for one in tried
        if one not in able
        and one.verdict.helps
        and _flips(one) <= least
        and one.loss.low <= max_accuracy_loss
    )
    explained = []
    for one in tried:
        if one is best:
            first = f"first by the rule, but {spell(close)} may be as good" if close else ""
            praise = _praise(best, fewest, near, tried, terms)
            why = f"{first or 'recommended'}: {praise}"
            if best.loss.high > max_accuracy_loss:
                why += f"; {terms.tell_at_most(best.loss.high, max_accuracy_loss)}"
        elif one not in able:
            why = _word(one, max_accuracy_loss, terms)
        elif one not in fewest:
            why = (
                f"{_still(one)} of fresh people still flip; with {best.how}, "
                f"{'none' if _flips(best) == 0 else _percent(best.people.shares[1])}"
            )
        elif one not in near:
            why = f"{terms.tell_more(one.loss.value - best.loss.value)} {best.how}"
        elif one.asked > best.asked:
            why = f"as good as {best.how}, but asks the model {one.asked} times per answer"
        else:
            why = f"as good as {best.how}, but takes longer to make"
        if one.how in close or (one in fewest and one not in near and _may_be_equal(one, best)):
            why += ", which may be chance"
        explained.append(replace(one, why=why))
    return explained, best.how, close


def _may_be_equal(one: Tried, best: Tried) -> bool:
    """May the two lose the same, for all that the rows say?"""
    return one.loss.low <= best.loss.value


def _flips(one: Tried) -> float:
    """Share of fresh people who may flip, by the end of the interval; 0 where so few do that they
    count as removed."""
    if one.verdict.removes:
        return 0.0
    return rate_of(one.people.after, one.people.rows_after or one.people.rows).high


def _praise(
    best: Tried,
    fewest: Sequence[Tried],
    near: Sequence[Tried],
    tried: Sequence[Tried],
    terms: Terms,
) -> str:
    removes = _flips(best) == 0
    praise = "it removes the flips" if removes else "it leaves the fewest flips"
    if len(tried) == 1:
        return praise if removes else "it makes flips rarer"
    if len(fewest) == 1:
        if not removes:
            return praise
        alone = not any(one.verdict.removes for one in tried if one is not best)
        return f"{praise}, and no other does{'' if alone else ' at a cost that is allowed'}"
    numbers = terms.measure == "error"
    if len(near) == 1:
        least = "errs least" if numbers else "loses least accuracy"
        return f"{praise} and {least} of those that do"
    no_more = "errs no more" if numbers else "loses no more accuracy"
    return f"{praise}, {no_more} than others that do, and is the cheapest of them"


def _word(one: Tried, max_accuracy_loss: float, terms: Terms) -> str:
    if one.verdict.word == "unchanged":
        some = any(check.before for check in one.checks)
        return "flips are not rarer" if some else "nobody flipped before"
    if one.verdict.word == "worse":
        return "flips are more common"
    if one.loss.value > max_accuracy_loss:
        return terms.tell_too_much(one.loss.value, max_accuracy_loss)
    return one.verdict.reason


def _still(one: Tried) -> str:
    """How many flip, or may for all that is known."""
    share = one.people.shares[1]
    return _percent(share) if share else f"up to {_percent(_flips(one))}"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"
