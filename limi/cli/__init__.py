"""The command line: one file per command, one sentence per error."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    from limi.cli._net import exit_code_of

    sys.exit(exit_code_of(_run))


def _run() -> None:
    from typer.main import get_command

    from limi.cli._app import app

    # Not `app()`, which has a net of its own with larger holes.
    command = get_command(app)
    with command.make_context("limi", sys.argv[1:]) as context:
        command.invoke(context)
