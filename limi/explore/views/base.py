"""What all views share: rendering, and answers that may take long."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from limi.errors import InvalidInput
from limi.explore.exploration import Exploration
from limi.explore.jobs import Job
from limi.report._pages import environment

__all__ = ["PAGE_ROWS", "PATIENCE", "Page", "View", "read_finite", "tell_share"]

PAGE_ROWS = 25
PATIENCE = 1.5
"""Seconds that a request waits for an answer before it says that it waits."""

_MOST_AWAITED = 400  # answers whose template is known


@dataclass(frozen=True)
class Page:
    """What a request is answered with."""

    body: str
    status: int = 200


@dataclass(frozen=True)
class _Awaited:
    """How the answer of a job is shown."""

    template: str
    ready: Callable[[Any], dict[str, Any]]


_NOTHING = _Awaited(
    "message.html",
    lambda told: {"sentence": "This was answered long ago and is no longer kept; ask again."},
)


class View:
    """Renders what an exploration knows."""

    def __init__(self, exploration: Exploration) -> None:
        self.x = exploration
        self._environment = environment("limi.explore")
        self._awaited: dict[int, _Awaited] = {}
        self._lock = threading.Lock()  # requests are answered by several threads

    def render(
        self, template: str, token: str, *, whole: bool, status: int = 200, **content: Any
    ) -> Page:
        """A page, or the part of it that a script puts into one."""
        x = self.x
        body = self._environment.get_template(template).render(
            whole=whole,
            token=token,
            x=x,
            asked=x.meter.asked,
            most=x.meter.most,
            bookmarks=len(x.record.bookmarks),
            **content,
        )
        return Page(body, status)

    def message(
        self, sentence: str, token: str = "", *, whole: bool = True, status: int = 400
    ) -> Page:
        """One sentence."""
        return self.render(
            "message.html", token, whole=whole, status=status, sentence=sentence, here=""
        )

    def begin(
        self,
        title: str,
        template: str,
        work: Callable[[Job], Any],
        ready: Callable[[Any], dict[str, Any]],
        token: str,
        *,
        whole: bool,
    ) -> Page:
        """Begin a piece of work; `ready` turns what it tells into what the template needs."""
        job = self.await_job(title, template, work, ready)
        return self.job(job.number, token, whole=whole)

    def await_job(
        self,
        title: str,
        template: str,
        work: Callable[[Job], Any],
        ready: Callable[[Any], dict[str, Any]],
    ) -> Job:
        """A piece of work after a short while, ended or not."""
        job = self.x.jobs.start(title, work)
        with self._lock:
            self._awaited[job.number] = _Awaited(template, ready)
            while len(self._awaited) > _MOST_AWAITED:
                del self._awaited[next(iter(self._awaited))]
        job.wait(PATIENCE)
        return self.x.jobs.get(job.number)

    def job(self, number: int, token: str, *, whole: bool) -> Page:
        """How a question stands: its answer, or that it is being waited for."""
        job = self.x.jobs.get(number)
        awaited = self._awaited.get(number, _NOTHING)
        state = job.state
        common: dict[str, Any] = {"job": job, "state": state, "here": "job", "title": job.title}
        if state == "failed":
            return self.render("message.html", token, whole=whole, sentence=job.error, **common)
        told = job.result if state == "done" else job.partial
        on_the_way = isinstance(told, dict) and state != "done"
        ready = {} if told is None or on_the_way else awaited.ready(told)
        if ready or state == "done":
            return self.render(awaited.template, token, whole=whole, **common, **ready)
        words = told.get("words", "") if isinstance(told, dict) else ""
        asked = told.get("queries") if isinstance(told, dict) else None
        return self.render("waiting.html", token, whole=whole, words=words, queries=asked, **common)

    def cancel(self, number: int, token: str, *, whole: bool) -> Page:
        """Stop waiting."""
        job = self.x.jobs.get(number)
        job.cancel()
        job.wait(PATIENCE)
        return self.job(number, token, whole=whole)


def read_finite(text: str) -> float:
    """A number that a request holds; InvalidInput where it is none."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInput(f"{text[:40]!r} is not a number")
    return value


def tell_share(value: float) -> str:
    """A p-value of naturalness in words."""
    if math.isnan(value):
        return ""
    return f"{100 * value:.0f} %" if value >= 0.02 else f"{100 * value:.1f} %"
