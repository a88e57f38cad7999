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
        Console(stderr=True, soft_wrap=True).print(Text(f"limi: {error}"))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        Console(stderr=True).print("limi: interrupted")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does; that is no error of ours.
        sys.stderr.close()
        sys.exit(141)
