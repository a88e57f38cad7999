"""The command line: one file per command, one sentence per error."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]

_COMPLETING = "_LIMI_COMPLETE"  # set by the shell's completion script


def main() -> None:
    """Run the command line, or tell a shell how it goes on."""
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
