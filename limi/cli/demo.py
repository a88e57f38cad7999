"""`limi demo`: one real test of a real model on real data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from limi.api import DEFAULT_MAX_ROWS
from limi.cli import _console
from limi.cli.test import finish

__all__ = ["demo"]


def demo(
    out: Annotated[Path, Option(help="Run folder to write.")] = Path("limi-demo"),
    seed: Annotated[int, Option(help="Same seed, same findings.")] = 0,
    as_json: Annotated[bool, Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Train an income model on the Adult census and test it for sex."""
    import limi

    adult = limi.data.load("adult")
    frame = adult.frame.drop(columns=["fnlwgt"])  # a survey weight, which no model should use
    _console.err.print(
        f"Training a gradient-boosting income model on {len(frame):,} census rows ..."
    )
    model = income_model(frame, adult.target)
    with _console.run_progress(DEFAULT_MAX_ROWS) as show:
        result = limi.audit(
            model,
            frame,
            protected=["sex"],
            target=adult.target,
            favorable=adult.favorable,
            schema=adult.schema.select([n for n in adult.schema.names if n != "fnlwgt"]),
            seed=seed,
            out=out,
            force=_is_demo(out),
            table_name="adult",
            command=f"limi demo --out {out} --seed {seed}",
            on_progress=show,
        )
    finish(result, out, as_json)
    _console.err.print(
        "Next: open the report, or test a model of your own:\n"
        "  limi test TABLE.csv --model KIND:PLACE --target COLUMN --favorable LABEL --protected sex"
    )


def income_model(frame: Any, target: str) -> Any:
    """A pipeline that takes the table as it is: text, missing values and all."""
    from sklearn.compose import make_column_selector, make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder

    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    text = make_column_selector(dtype_exclude="number")
    columns = make_column_transformer((encoder, text), remainder="passthrough")
    model = make_pipeline(columns, HistGradientBoostingClassifier(random_state=0))
    return model.fit(frame.drop(columns=[target]), frame[target])


def _is_demo(out: Path) -> bool:
    """The demo replaces its own earlier folder, finished or not, and no other."""
    for folder in (out, out.with_name(out.name + ".partial")):
        if folder.exists():
            try:
                made_by = json.loads((folder / "manifest.json").read_text("utf-8"))["command"]
            except (OSError, ValueError, KeyError, TypeError):
                return False
            if not str(made_by).startswith("limi demo"):
                return False
    return True
