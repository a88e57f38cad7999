"""The picture of docs/roles.md: what becomes of Adult's husbands, and who is favored, if only sex
changes and if relationship goes along with it.

python tools/roles_picture.py            # ask the demo's model, and write docs/roles.svg
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

from limi import data
from limi.audits.problem import prepare
from limi.decisions import favors
from limi.search.check import Checked, check_rows
from limi.table.rules import Role, Rules
from limi.types import Rows

_FILE = Path(__file__).parent.parent / "docs" / "roles.svg"
_ROLE = Role(
    protected="sex", column="relationship", things=((("Female", "Wife"), ("Male", "Husband")),)
)
_WIDTH, _BAR, _LEFT, _TOP, _STEP = 900, 330, 280, 74, 40
_STYLE = """:root { color-scheme: light dark; }
svg { background: #ffffff; }
text { font: 13px system-ui, sans-serif; fill: #566070; }
.name, .title { fill: #14181f; } .title { font-weight: 600; }
.women { fill: #a94a08; } .men { fill: #1b5cb8; } .odd { fill: #7c8796; } .base { stroke: #7c8796; }
@media (prefers-color-scheme: dark) {
  svg { background: #0f1216; }
  text { fill: #9ca7b6; } .name, .title { fill: #e8ebf0; }
  .women { fill: #ffb076; } .men { fill: #86b6ff; } .odd { fill: #707c8d; }
  .base { stroke: #707c8d; }
}"""


@dataclass(frozen=True)
class Story:
    """The figures of the picture."""

    husbands: tuple[tuple[str, str, float], ...]  # who they are asked as, and the favorable share
    flips: tuple[tuple[str, float, float], ...]  # a question, flips that favor women and men


def measure() -> Story:
    """Ask the demo's model about all rows of Adult."""
    adult = data.load("adult")
    problem = prepare(
        "demo:income",
        adult.frame,
        protected=["sex"],
        target=adult.target,
        favorable=adult.favorable,
        schema=adult.schema.unruled,
    )
    plain, score, rows = problem.schema, problem.target.score, problem.rows
    ruled = replace(plain, rules=Rules(roles=(_ROLE,)))
    sex, tie = plain.position("sex"), plain.position("relationship")
    male, female = (plain["sex"].code(value) for value in ("Male", "Female"))
    wife, husband = (plain["relationship"].code(level) for level in ("Wife", "Husband"))
    men = rows[(rows[:, sex] == male) & (rows[:, tie] == husband)]

    def share(under: float, level: float) -> float:
        asked = men.copy()
        asked[:, sex], asked[:, tie] = under, level
        return float(favors(score(asked)).mean())

    def directions(checked: Checked) -> tuple[float, float]:
        found: Rows = np.where(favors(checked.score)[:, None], checked.rows, checked.partner)[
            checked.flips
        ]
        return tuple(float((found[:, sex] == value).sum() / len(rows)) for value in (female, male))

    return Story(
        (
            ("as they are: Husband, Male", "men", share(male, husband)),
            ("only sex changed: Husband, Female", "odd", share(female, husband)),
            ("with their role: Wife, Female", "women", share(female, wife)),
        ),
        (
            ("only sex changed", *directions(check_rows(score, plain, rows))),
            ("relationship goes along", *directions(check_rows(score, ruled, rows))),
        ),
    )


def draw(story: Story) -> str:
    """The picture as SVG."""
    title = "Adult: what changes if relationship goes along with sex"
    parts = [
        _text(28, 30, title, "title"),
        _text(28, 56, "husbands decided >50K", "name"),
    ]
    for line, (name, kind, part) in enumerate(story.husbands):
        y = _TOP + line * _STEP
        parts += [
            _text(28, y + 17, name),
            _rect(_LEFT, y, part / 0.6 * _BAR, kind),
            _text(_LEFT + part / 0.6 * _BAR + 8, y + 17, f"{100 * part:.1f} %", "name"),
        ]
    top = _TOP + len(story.husbands) * _STEP + 44
    parts.append(_text(28, top - 18, "people whose decision flips, by whom it favors", "name"))
    for line, (name, women, men) in enumerate(story.flips):
        y = top + line * _STEP
        wide = [share / 0.07 * _BAR for share in (women, men)]
        total = f"{100 * (women + men):.1f} % flip: {100 * women:.1f} % favor women, "
        parts += [
            _text(28, y + 17, name),
            _rect(_LEFT, y, wide[0], "women"),
            _rect(_LEFT + wide[0], y, wide[1], "men"),
            _text(_LEFT + sum(wide) + 8, y + 17, f"{total}{100 * men:.1f} % men", "name"),
        ]
    height = top + len(story.flips) * _STEP + 24
    for start, lines in ((_TOP, len(story.husbands)), (top, len(story.flips))):
        end = start + lines * _STEP - 10
        parts.append(f'<line class="base" x1="{_LEFT}" x2="{_LEFT}" y1="{start - 6}" y2="{end}"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-label="{title}">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n" + "\n".join(parts) + "\n</svg>\n"
    )


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def _rect(x: float, y: float, width: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="24"/>'


if __name__ == "__main__":
    _FILE.write_text(draw(measure()), encoding="utf-8")
