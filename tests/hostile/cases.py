"""Inputs by their names: `KIND/NAME` of the corpus, `KIND/SEED/NUMBER` of the generator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tests.hostile import villains
from tests.hostile.case import Case
from tests.hostile.draw import Draw, stream
from tests.hostile.kinds import KINDS
from tests.hostile.material import Material

WARM_UP = ("options/sound-test", "options/sound-test-natural", "options/sound-repair")
"""Inputs after which most has been loaded of what the material did not need.

None opens a graph: onnxruntime starts a thread when it is loaded.
"""


def build(
    case: str, material: Material, choices: Sequence[int] | None = None
) -> tuple[Case, tuple[int, ...]]:
    """An input by its name, and the choices that made it; given choices take the seed's place."""
    kind, _, rest = case.partition("/")
    known = {**KINDS, "villains": villains}
    if kind not in known:
        raise SystemExit(f"there is no kind {kind!r} of inputs; there are {', '.join(known)}")
    module = known[kind]
    seed, _, number = rest.partition("/")
    if not number:
        if rest not in module.CORPUS:
            raise SystemExit(f"{kind} has no case {rest!r}")
        return module.CORPUS[rest](material), ()
    draw = Draw(stream(int(seed), kind, int(number)) if choices is None else None, choices or ())
    made = module.drawn(draw, material)
    return made, tuple(draw.taken)


def corpus(kind: str | None = None) -> list[str]:
    """The names of the corpus."""
    return [
        f"{name}/{case}"
        for name, module in KINDS.items()
        if kind in (None, name)
        for case in module.CORPUS
    ]


def generated(seed: int, count: int, kinds: Sequence[str] = ()) -> Iterator[str]:
    """The names of so many inputs of a seed, the kinds mixed by their shares."""
    shares = {name: KINDS[name].SHARE for name in kinds or KINDS}
    total = sum(shares.values())
    due = dict.fromkeys(shares, 0.0)
    numbers = dict.fromkeys(shares, 0)
    for _ in range(count):
        for name, share in shares.items():
            due[name] += share / total
        kind = max(due, key=due.__getitem__)
        due[kind] -= 1
        yield f"{kind}/{seed}/{numbers[kind]}"
        numbers[kind] += 1


__all__ = ["KINDS", "WARM_UP", "Material", "build", "corpus", "generated"]
