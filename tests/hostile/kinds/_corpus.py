"""Named cases of a kind."""

from __future__ import annotations

from collections.abc import Callable

from tests.hostile.case import Case
from tests.hostile.material import Material

Build = Callable[[Material], Case]


class Corpus(dict[str, Build]):
    """Functions that make cases, by name."""

    def case(self, name: str) -> Callable[[Build], Build]:
        """Enter a function under a name."""
        if name in self:
            raise ValueError(f"there are two cases {name!r}")

        def enter(build: Build) -> Build:
            self[name] = build
            return build

        return enter

    def each(self, name: str, builds: dict[str, Build]) -> None:
        """Enter a family of functions."""
        for one, build in builds.items():
            self.case(f"{name}-{one}")(build)
