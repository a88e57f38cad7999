"""`limi demo`: one real test of a real model on real data."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

from typer import Option

from limi.cli import _console
from limi.cli._apart import Writes
from limi.cli._options import AsJson, Full
from limi.cli.test import finish

__all__ = ["demo"]


def demo(
    out: Annotated[Path, Option(help="Run folder to write."), Writes()] = Path("limi-demo"),
    seed: Annotated[int, Option(help="Same seed, same findings.")] = 0,
    full: Full = False,
    as_json: AsJson = False,
) -> None:
    """Train an income model on the Adult census and test it for sex."""
    import limi
    from limi.audits.drafts import Draft
    from limi.search.budget import check_seed

    check_seed(seed)
    Draft.at(out, force=_is_demo(out))  # refused before a model is trained
    adult = limi.data.load("adult")
    _console.err.print(
        f"Training a gradient-boosting income model on {len(adult.frame):,} census rows ..."
    )
    with _console.run_progress() as show:
        result = limi.audit(
            "demo:income",  # so that a run folder says where its model comes from
            adult.frame,
            protected=["sex"],
            target=adult.target,
            favorable=adult.favorable,
            schema=adult.schema,
            seed=seed,
            out=out,
            force=_is_demo(out),
            table_name="adult",
            command=f"limi demo --out {out} --seed {seed}",
            on_plan=_console.announce,
            on_progress=show,
        )
    finish(result, out, as_json, full=full)
    _console.err.print(_next_steps(out))


def _next_steps(out: Path) -> str:
    """What the report does not say itself: it ends with how to repair this model."""
    return (
        "Test a model of your own:\n  limi test TABLE.csv --model KIND:PLACE --target COLUMN "
        "--favorable LABEL --protected sex\nAsk this model questions, person by person, in your "
        f"browser:\n  limi explore {out}{_missing_page()}"
    )


def _missing_page() -> str:
    """What has to be installed first, where it is not."""
    return "" if find_spec("starlette") and find_spec("uvicorn") else "  # limi[explore]"


def _is_demo(out: Path) -> bool:
    """The demo replaces its own earlier folder, finished or not, and no other."""
    from limi.audits.run_folder import read_json
    from limi.errors import CorruptStore

    # An unfinished one without a manifest was killed before it had anything to lose.
    begun = Path(f"{out}.partial", "manifest.json")
    there = [out / "manifest.json"] if os.path.lexists(out) else []
    try:
        made_by = [
            str(read_json(path).get("command"))
            for path in [*there, *([begun] if os.path.lexists(begun) else [])]
        ]
    except CorruptStore:
        return False
    return all(command.startswith("limi demo") for command in made_by)
