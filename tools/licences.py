"""Fail where a dependency is under BUSL, GPL or AGPL, or under no known licence.

Walks the requirements of limi and of every extra that a user or a reader of the documentation
installs, among the installed packages; those of our own tools (`dev`) are left out. Written here
because the usual tools list every installed package and cannot tell these from ours.
"""

from __future__ import annotations

import re
import sys
from importlib import metadata

from packaging.requirements import Requirement

EXTRAS = tuple(
    extra
    for extra in metadata.metadata("limi").get_all("Provides-Extra") or []
    if not extra.startswith("dev")
)

_FORBIDDEN = re.compile(r"\b(BUSL|Business Source|AGPL|Affero|GPL|General Public)", re.IGNORECASE)
_WEAKER = re.compile(r"\bL(GPL|esser General Public)|GPL[^ ]* WITH [^ ]*exception", re.IGNORECASE)
_KNOWN = re.compile(
    r"\b(MIT|BSD|0BSD|Apache|PSF|Python Software Foundation|ISC|MPL|Mozilla|Zlib|CC0|Unlicense"
    r"|MIT-CMU|HPND|BSL-1\.0)\b",
    re.IGNORECASE,
)
# Read by hand, because the metadata says nothing of use.
_READ_BY_HAND = {
    "nvidia-nccl-cu12": "named by the xgboost wheel for Linux; limi never uses it",
    "docutils": "public domain and BSD; the GPL is that of an Emacs file which no wheel holds",
}


def licence(name: str) -> str:
    """What a distribution says of its licence, in its metadata or else in its licence file."""
    about = metadata.metadata(name)
    said = [about.get("License-Expression"), about.get("License")]
    said += [c for c in about.get_all("Classifier") or [] if c.startswith("License ::")]
    words = "; ".join(s.partition("\n")[0] for s in said if s and s != "UNKNOWN")
    if _KNOWN.search(words) or _FORBIDDEN.search(words):
        return words
    for file in metadata.files(name) or []:
        if re.match(r"(licen[cs]e|copying)", file.name, re.IGNORECASE):
            text = file.read_text()
            return f"{words or 'file'}: {' '.join(text.split()[:6])}"
    return words or "unknown"


def closure(root: str, extras: tuple[str, ...]) -> set[str]:
    """Installed distributions that `root` needs at run time."""
    found: set[str] = set()
    queue = [(root, frozenset(extras))]
    while queue:
        name, wanted = queue.pop()
        for text in metadata.requires(name) or []:
            requirement = Requirement(text)
            marker = requirement.marker
            if marker and not any(marker.evaluate({"extra": e}) for e in (*wanted, "")):
                continue
            key = re.sub(r"[-_.]+", "-", requirement.name).lower()
            if key in found:
                continue
            try:
                metadata.version(key)
            except metadata.PackageNotFoundError:
                continue
            found.add(key)
            queue.append((key, frozenset(requirement.extras)))
    return found


def judged(name: str, words: str) -> str | None:
    """What is wrong with a licence, or None."""
    if name in _READ_BY_HAND:
        return None
    if _FORBIDDEN.search(_WEAKER.sub("", words)):
        return f"{name} is under {words}"
    return None if _KNOWN.search(words) else f"{name} has an unknown licence ({words})"


def main() -> int:
    """Print the verdict; 1 where something is refused."""
    names = sorted(closure("limi", EXTRAS))
    wrong = [w for name in names if (w := judged(name, licence(name)))]
    for line in wrong:
        print(f"licence gate: {line}", file=sys.stderr)
    print(f"licence gate: {len(names)} dependencies, {len(wrong)} refused")
    return 1 if wrong or not names else 0


if __name__ == "__main__":
    sys.exit(main())
