"""An audit of images in words, for a terminal, and as a page with pairs to look at."""

from __future__ import annotations

import base64
import io
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limi.decisions import favors
from limi.report import _pages
from limi.system.words import both, count, seconds

if TYPE_CHECKING:
    from limi.images.figures import Effect, Excess
    from limi.images.result import ImageResult, Sheet

__all__ = ["Line", "limits", "lines", "render", "sentence"]

_SHOWN = 12  # pairs of each kind

_LIMITS = (
    "A count of flips is not evidence by itself: random moves of the same size also flip "
    "decisions, which is what the floor shows.",
    "Apparent attributes are what scorers see. Nothing here says anything about a person's actual "
    "gender, or about causes.",
    (
        "A start and its twin look like relatives rather than one person: the whole face changes a "
        "little."
    ),
    "A generator made the images, and they can be told apart from photographs. What holds for "
    "them need not hold for the people that a system will see.",
    "Scorer and judge learned from the same photographs, so what both get wrong in the same way "
    "goes unnoticed.",
    (
        "If nothing stands out, there may still be an effect smaller than the smallest dose that "
        "was seen."
    ),
)


@dataclass(frozen=True)
class Line:
    """One figure."""

    name: str
    value: str
    means: str


def sentence(result: ImageResult) -> str:
    """The verdict."""
    effect = result.effect
    more, less = result.groups if effect.effect > 0 else result.groups[::-1]
    sign = 1 if effect.effect > 0 else -1
    low, high = sorted((sign * effect.low, sign * effect.high))
    size = f"{abs(effect.effect):.2f} logits ({low:.2f} to {high:.2f})"
    moved = f"from {result.protected} {less} to {more}"
    # A label of several values is held value by value, and is one thing to a reader.
    names = (one.partition("=")[0] for one in (result.truth, *result.held) if one)
    kept = list(dict.fromkeys(names))
    held = f" with {both(kept)} held" if kept and result.procedure.conditioned else ""
    if result.verdict == "unknown":
        return (
            f"The score rises by {size} {moved}{held}, but without a placebo there is no telling "
            "what a random move of that size does."
        )
    if effect.seen:
        return (
            f"The score rises by {size} when the apparent attribute goes {moved}{held}, by these "
            f"judges; 95 of 100 random moves of that size stay within {effect.floor:.2f}."
        )
    if result.excess.seen:
        return (
            f"Decisions flip {_points(result.excess.excess)} more often than under random moves of "
            f"the same size when {result.protected} changes{held}, in both directions alike."
        )
    smallest = result.smallest_dose
    would = (
        "this run would have seen none of the planted doses"
        if smallest is None
        else f"this run would have seen an effect of {smallest.added:.2f}"
    )
    return (
        f"Nothing stands out from random moves of the same size: the score changes by {size} "
        f"{moved}{held}, and they reach {effect.floor:.2f}; {would}."
    )


def lines(result: ImageResult) -> list[Line]:
    """The figures of a result."""
    effect, excess, search = result.effect, result.excess, result.excess_searched
    first, second = result.groups
    found = [
        Line(
            "effect",
            f"{effect.effect:+.2f} ({_interval(effect)})",
            f"logits, {first} less {second}, less what the judge sees change; on "
            f"{count(effect.n)} valid twins from random starts",
        ),
        Line(
            "floor of the effect",
            "none" if math.isnan(effect.floor) else f"{effect.floor:.2f}",
            "the range that 95 of 100 random moves of the same pixel distance stay within",
        ),
        Line("direction", _share(effect.direction), "of twins go the way of the mean effect"),
        Line(
            f"from {first}, from {second}",
            f"{effect.from_first:+.2f}, {effect.from_second:+.2f}",
            "the effect by the group of the start; they should agree",
        ),
    ]
    if result.placebo:
        found += [
            Line("excess of flips", _excess(excess), _means(excess, "random starts")),
            Line(
                "excess where it is close",
                _excess(search),
                _means(search, "starts of the search"),
            ),
        ]
    found += [
        Line(
            "findings",
            count(result.n_findings),
            f"strict twins whose decision flips, of {count(result.searched['cases'])} cases; "
            "distinct by their images",
        )
    ]
    return found


def limits() -> tuple[str, ...]:
    """What may not be concluded."""
    return _LIMITS


def counts(result: ImageResult) -> list[tuple[str, str, str]]:
    """What became of the cases, for the search and for random starts."""
    names = {
        "cases": "cases",
        "valid": "valid: the protected scorer is sure of both groups",
        "confirmed": "of these, confirmed by the judge",
        "strict": "strict: and the truth is kept",
        "flips_valid": "valid twins whose decision flips",
        "placebo_flips": "their placebos whose decision flips",
        "flips_strict": "strict twins whose decision flips",
        "placebo_flips_strict": "placebos that flip with the truth kept",
    }
    return [
        (words, count(result.searched[name]), count(result.measured[name]))
        for name, words in names.items()
        if result.placebo or "placebo" not in name
    ]


def render(result: ImageResult) -> str:
    """The page."""
    doses = [
        {
            "dose": f"{one.dose:g}",
            "added": f"{one.added:+.2f}",
            "effect": f"{one.effect.effect:+.2f}",
            "direction": _share(one.effect.direction),
            "excess": _excess(one.excess),
            "seen": both(
                [
                    name
                    for name, seen in (("effect", one.effect_seen), ("flips", one.excess_seen))
                    if seen
                ]
            )
            or "no",
        }
        for one in result.doses
    ]
    return _pages.render(
        "images.html",
        ("report", "images"),
        title=f"limi: {result.protected} in images",
        verdict=sentence(result),
        result=result,
        lines=lines(result),
        counts=counts(result),
        doses=doses,
        chart=_chart(result),
        strongest=_pairs(result.findings, result),
        random=_pairs(result.samples, result),
        scorers=[
            (one.name, one.architecture, count(one.n), _share(one.accuracy), count(one.n_held_out))
            for one in result.scorers
        ],
        planes=[(name, f"{auc:.3f}") for name, auc in result.planes.items()],
        quality=result.quality,
        limits=_LIMITS,
        took=seconds(result.seconds),
        pictures=True,
    )


def _chart(result: ImageResult) -> dict[str, Any] | None:
    """Effect and floor on one axis, in percent of its width."""
    effect = result.effect
    if not math.isfinite(effect.low) or math.isnan(effect.floor):
        return None
    reach = 1.15 * max(abs(effect.low), abs(effect.high), effect.floor, 0.1)

    def at(value: float) -> float:
        return 50 + 50 * value / reach

    return {
        "low": at(effect.low),
        "high": at(effect.high),
        "mid": at(effect.effect),
        "from": at(-effect.floor),
        "to": at(effect.floor),
        "reach": f"{reach:.2f}",
    }


def _pairs(sheet: Sheet, result: ImageResult) -> list[dict[str, Any]]:
    found = []
    some = sheet.trials[slice(0, _SHOWN)]
    for number in range(len(some)):
        sides = [(sheet.images.start[number], "start", some.score[number], some.protected[number])]
        sides.append(
            (sheet.images.twin[number], "twin", some.twin[number], some.protected_twin[number])
        )
        if not math.isnan(some.placebo[number]):
            sides.append(
                (
                    sheet.images.placebo[number],
                    "placebo",
                    some.placebo[number],
                    some.protected_placebo[number],
                )
            )
        found.append(
            {
                "sides": [
                    {
                        "image": _data(image),
                        "what": what,
                        "score": f"{score:.3f}",
                        "yes": bool(favors(score)),
                        "group": result.groups[int(favors(group))],
                    }
                    for image, what, score, group in sides
                ],
                "effect": f"{some.effect[number]:+.2f}",
                "distance": f"{some.distance[number]:.0f}",
            }
        )
    return found


def _data(image: Any) -> str:
    """An image as a text that a page holds."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, format="PNG")
    return f"data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}"


def _interval(effect: Effect) -> str:
    return f"{effect.low:.2f} to {effect.high:.2f}"


def _excess(excess: Excess) -> str:
    if not math.isfinite(excess.low):
        return "unknown"
    return (
        f"{100 * excess.excess:+.1f} points ({100 * excess.low:+.1f} to {100 * excess.high:+.1f})"
    )


def _means(excess: Excess, where: str) -> str:
    return (
        f"{_share(excess.rate)} of {count(excess.n)} confirmed twins flip by more than the judge "
        f"sees change, and {_share(excess.floor)} of their placebos; {where}"
    )


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def _share(share: float) -> str:
    return "unknown" if math.isnan(share) else f"{100 * share:.1f} %"
