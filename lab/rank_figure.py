"""Critical-difference diagrams: mean ranks on a line, and bars over methods that chance may tie."""

from __future__ import annotations

import math
from html import escape

from lab.drawing import STYLE, draw_rule, draw_text
from lab.targets.ranks import Ranks

__all__ = ["draw_ranks"]

_WIDTH, _SIDE, _TOP, _ROW, _BAR = 720.0, 150.0, 112.0, 22.0, 10.0


def draw_ranks(ranks: Ranks, title: str) -> str:
    """The diagram of Demsar: best on the left, names at both sides."""
    n = len(ranks.methods)
    low, high = 1, max(2, math.ceil(max(ranks.means)))
    across = _WIDTH - 2 * _SIDE

    def place(mean: float) -> float:
        return _SIDE + across * (mean - low) / (high - low)

    body = [draw_rule("base", place(low), _TOP, place(high), _TOP)]
    for tick in range(low, high + 1):
        x = place(tick)
        body += [
            draw_rule("base", x, _TOP - 5, x, _TOP),
            draw_text(x, _TOP - 10, str(tick), anchor="middle"),
        ]
    wide = across * ranks.difference / (high - low)
    body += [
        draw_rule("range", place(low), 70, place(low) + wide, 70),
        draw_text(place(low), 62, f"critical difference {ranks.difference:.2f}"),
    ]
    runs = ranks.alike()
    for number, (start, end) in enumerate(runs):
        y = _TOP + 12 + _BAR * number
        body.append(
            draw_rule("range", place(ranks.means[start]) - 3, y, place(ranks.means[end]) + 3, y)
        )
    below = _TOP + 22 + _BAR * len(runs)
    half = math.ceil(n / 2)
    for number, (method, mean) in enumerate(zip(ranks.methods, ranks.means, strict=True)):
        left = number < half
        y = below + _ROW * (number if left else n - 1 - number)
        edge = _SIDE - 12 if left else _WIDTH - _SIDE + 12
        x = place(mean)
        body += [
            draw_rule("base", x, _TOP, x, y),
            draw_rule("base", min(x, edge), y, max(x, edge), y),
            draw_text(
                edge - 4 if left else edge + 4,
                y + 4,
                f"{method}  {mean:.2f}" if left else f"{mean:.2f}  {method}",
                "name",
                "end" if left else "start",
            ),
        ]
    height = below + _ROW * half + 8
    words = f"{ranks.n_targets} targets; Friedman p {_show(ranks.p_value)}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" '
            f'width="{_WIDTH:g}" height="{height:g}" role="img" aria-label="{escape(title)}">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            draw_text(20, 24, title, "title"),
            draw_text(20, 42, words),
            *body,
            "</svg>",
            "",
        ]
    )


def _show(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.3f}"
