"""The command line: one file per command, one sentence per error."""

from __future__ import annotations

import gc
import os
import sys

__all__ = ["main"]

_COMPLETING = "_LIMI_COMPLETE"  # set by the shell's completion script
_OBJECTS = 50_000  # made before Python looks for cycles among them; by itself it looks every 700


def main() -> None:
    """Run the command line, or tell a shell how it goes on."""
    # Imports make a million objects that stay: looking at them again and again takes a sixth of
    # the time until a command begins.
    gc.set_threshold(_OBJECTS, 20, 20)
    from limi.cli._net import exit_code_of

    if _COMPLETING in os.environ:
        _answer_shell()
    sys.exit(exit_code_of(_run))


def _answer_shell() -> None:
    from typer.main import get_command

    from limi.cli._app import app

    get_command(app).main(prog_name="limi")


def _run() -> None:
    from typer.main import get_command

    from limi.cli._app import app

    # Not `app()`, which has a net of its own with larger holes.
    command = get_command(app)
    with command.make_context("limi", sys.argv[1:]) as context:
        command.invoke(context)
