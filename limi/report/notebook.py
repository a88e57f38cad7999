"""A progress bar for notebooks: shown once a run takes more than two seconds, gone when it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from typing import Any

from limi.report import wording
from limi.system import words
from limi.system.watch import Progress

__all__ = ["NotebookBar", "notebook_bar"]

_PATIENCE = 2.0  # seconds that a run may take before a bar is shown
_EVERY = 0.25  # seconds between two updates


class NotebookBar:
    """Shows how far a run is in the output of a cell, and clears it at the end."""

    def __init__(
        self, show: Callable[[str], Callable[[str], None]], clock: Callable[[], float]
    ) -> None:
        self._show = show  # shows HTML, and gives a function that puts other HTML in its place
        self._update: Callable[[str], None] | None = None
        self._clock = clock
        self._last = -_EVERY

    def __call__(self, progress: Progress) -> None:
        """Draw the bar, where the last time is a moment ago."""
        now = self._clock()
        if progress.seconds < _PATIENCE or now - self._last < _EVERY:
            return
        self._last = now
        html = render(progress)
        if self._update is None:
            self._update = self._show(html)
        else:
            self._update(html)

    def close(self) -> None:
        """Clear the bar."""
        if self._update is not None:
            self._update("")
            self._update = None


def render(progress: Progress) -> str:
    """The bar as HTML, in the colours of the notebook."""
    speed = progress.queries / progress.seconds if progress.seconds else 0.0
    told = [
        wording.phase(progress.phase),
        f"{progress.findings:,} findings",
        f"{speed:,.0f} queries per second",
        f"about {words.seconds(max(progress.left, 0.0))} left",
    ]
    return (
        f'<div style="color:inherit"><progress max="1" value="{min(progress.done, 1.0):.3f}" '
        f'style="width:16em;vertical-align:middle"></progress> {escape(", ".join(told))}</div>'
    )


def notebook_bar() -> NotebookBar | None:
    """A bar where this is a cell of a notebook; None in a script, a shell or a test."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return None
    from IPython.display import HTML, display

    def show(html: str) -> Callable[[str], None]:
        handle: Any = display(HTML(html), display_id=True)
        return lambda other: handle.update(HTML(other))

    return NotebookBar(show, time.monotonic)
