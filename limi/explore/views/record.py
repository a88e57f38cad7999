"""The record: bookmarks, and every question in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from limi.audits.record import row_of
from limi.errors import LimiError
from limi.explore.query import Query
from limi.explore.views.base import Page, View
from limi.system.words import both, count

__all__ = ["RecordView"]

_ENTRIES = 200  # that are listed


class RecordView(View):
    """What was asked, and who was kept."""

    def record(self, token: str) -> Page:
        """Bookmarks, and what was asked."""
        x = self.x
        x.record.refresh()
        marks = []
        entries = {e["number"]: e for e in x.record.entries if "bookmark" in e}
        for mark in x.record.bookmarks:
            try:
                ref = x.keep(
                    row_of(x.schema, entries[mark.number]["cells"]), f"Bookmark {mark.number}"
                )
            except (LimiError, KeyError):  # a hidden cell, or a table whose columns have changed
                ref = ""
            marks.append((mark, ref))
        return self.render(
            "record.html",
            token,
            whole=True,
            here="record",
            title="Record",
            marks=marks,
            entries=[_tell_entry(entry) for entry in x.record.entries[-_ENTRIES:][::-1]],
            n_entries=len(x.record.entries),
            place=None if x.record.path is None else x.record.path.name,
        )

    def forget(self, form: Query, token: str) -> Page:
        """Remove a bookmark."""
        self.x.forget(form.number("number", 0, 10**9))
        return self.record(token)


def _tell_nearest(entry: Mapping[str, Any]) -> str:
    who = "flips" if entry["goal"] == "flip" else "does not flip"
    found = "nobody" if entry["found"] is None else f"at distance {entry['distance']:.2f}"
    return f"the nearest person who {who}: {found}"


def _tell_twins(entry: Mapping[str, Any]) -> str:
    told = [f"{n:,} of {of:,} as {group}" for group, (n, of) in entry["groups"].items()]
    return f"twins who are decided differently: {both(told)}"


_TOLD: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "person": lambda entry: (
        "a person under every protected value: " + ("flips" if entry["flips"] else "does not flip")
    ),
    "nearest": _tell_nearest,
    "walk": lambda entry: (
        "single changes that turn the decision: "
        + (both([name for name, to in entry["turns"].items() if to is not None]) or "none")
    ),
    "region": lambda entry: f"{entry['words']}: {entry['flips']:,} of {entry['n']:,} flip",
    "twins": _tell_twins,
}
"""By the kind of a question: the question in words."""


def _tell_entry(entry: Mapping[str, Any]) -> dict[str, str]:
    """A line of the record in words."""
    ask = str(entry.get("ask", ""))
    try:
        if ask:
            told = _TOLD[ask](entry)
        elif "begin" in entry:
            told = f"look {entry['look']} begins: {entry['words']}"
        elif "bookmark" in entry:
            told = f"bookmark: {entry['bookmark']}"
        else:
            told = f"bookmark {entry['forget']} removed"
    except (KeyError, TypeError, ValueError):
        told = "a line that cannot be read"
    queries = entry.get("queries")
    return {
        "number": str(entry.get("number", "")),
        "at": str(entry.get("at", "")),
        "words": told,
        "queries": count(queries) if isinstance(queries, int) else "",
    }
