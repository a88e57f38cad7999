"""The command line: one file a command, one sentence an error."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line."""
    from rich.console import Console
    from rich.text import Text

    from limi.cli._app import app
    from limi.errors import LimiError

    try:
        app(prog_name="limi")
    except LimiError as error:
        from limi.report.wording import clean

        # Names of files and columns may hold what would steer a terminal, or start a new line.
        said = clean(" ".join(f"limi: {error}".split("\n")))
        Console(stderr=True, soft_wrap=True).print(Text(said))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        Console(stderr=True).print("limi: interrupted")
        sys.exit(130)
    except SystemExit as stop:
        # typer turns the user's interrupt into an exit without a word.
        if isinstance(getattr(stop.__context__, "__cause__", None), KeyboardInterrupt):
            Console(stderr=True).print("limi: interrupted")
        raise
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does; that is no error of ours.
        sys.stderr.close()
        sys.exit(141)
