"""The picture of docs/twins.md: from Adult's women to their twins, carrier by carrier.

python tools/twins_picture.py            # train and ask a model that never sees sex, write
                                         # docs/twins.svg, and print what the page tells of it
"""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

import limi
from limi.report.twins import TwinWords, Way, tell

_FILE = Path(__file__).parent.parent / "docs" / "twins.svg"
_WIDTH, _LEFT, _AXIS, _TOP, _STEP, _BAR = 820, 250, 480, 16, 30, 16
_STYLE = (
    "text{fill:#2b2f36}.m{fill:#566070}.total{fill:#7c8796}.for{fill:#1b5cb8}"
    ".against{fill:#a94a08}.g{stroke:#d5dae2}.a{stroke:#566070;stroke-dasharray:3 3}"
    "@media(prefers-color-scheme:dark){text{fill:#e8ebf0}.m{fill:#9ca7b6}.g{stroke:#2a303a}"
    ".for{fill:#86b6ff}.against{fill:#ffb076}.a{stroke:#9ca7b6}}"
)


def measure() -> TwinWords:
    """Ask a boosted model that never saw sex about the held-out people of Adult."""
    adult = limi.data.load("adult")
    inputs = adult.frame.drop(columns=[adult.target, "sex"])
    text = [column.name for column in adult.schema.columns if column.kind != "numerical"]
    text = [name for name in text if name in inputs]
    coded = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan)
    # The coded columns come first.
    boosted = HistGradientBoostingClassifier(
        random_state=0, categorical_features=list(range(len(text)))
    )
    model = make_pipeline(
        make_column_transformer((coded, text), remainder="passthrough"), boosted
    ).fit(inputs, adult.frame[adult.target])
    result = limi.audit(
        model,
        adult.frame,
        protected=["sex"],
        target=adult.target,
        favorable=adult.favorable,
        schema=adult.schema,
        held_out=limi.data.load("adult", part="test").frame,
        twin=True,
        keep=["education", "hours_per_week"],
        max_rows=100,
        generator=None,
        method="real",
    )
    told = tell(result.summary)
    assert told is not None
    return told


def draw(way: Way) -> str:
    """The waterfall of one direction."""
    bottom = _TOP + _STEP * len(way.steps)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {bottom + 28}" '
        f'width="{_WIDTH}" height="{bottom + 28}" role="img" font-family="system-ui, sans-serif" '
        'font-size="13">',
        f"<title>{escape(way.sentence)}</title>",
        f"<style>{_STYLE}</style>",
    ]
    for place, words in way.step_ticks:
        x = _LEFT + _AXIS * place
        lines.append(
            f'<line class="g" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>'
            f'<text class="m" x="{x:.1f}" y="{bottom + 18}" text-anchor="middle">{words} %</text>'
        )
    x = _LEFT + _AXIS * way.goal_rate
    lines.append(
        f'<line class="a" x1="{x:.1f}" x2="{x:.1f}" y1="6" y2="{bottom}"/>'
        f'<text class="m" x="{x + 6:.1f}" y="14">{escape(way.goal_words)}</text>'
    )
    for number, step in enumerate(way.steps):
        middle = _TOP + _STEP * (number + 0.5)
        start, end = sorted((_LEFT + _AXIS * step.start, _LEFT + _AXIS * step.end))
        lines.append(
            f'<text x="{_LEFT - 12}" y="{middle + 4:.1f}" text-anchor="end">{escape(step.name)}'
            f'</text><rect class="{step.kind}" x="{start:.1f}" y="{middle - _BAR / 2:.1f}" '
            f'width="{end - start:.1f}" height="{_BAR}" rx="2"/>'
            f'<text x="{_WIDTH - 8}" y="{middle + 4:.1f}" text-anchor="end">{step.label}</text>'
        )
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    told = measure()
    first = told.ways[0]
    _FILE.write_text(draw(first), encoding="utf-8")
    print(told.alone, first.sentence, first.evidence, *(": ".join(k) + "." for k in first.kept))
