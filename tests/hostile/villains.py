"""Programs that end as no program should: what the harness must see.

Each is the entry of a case of its own, such as `villains/crashes`; none is part of a fuzz.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.hostile.case import Case, Fifo, Link
from tests.hostile.kinds._corpus import Corpus
from tests.hostile.material import Material

CORPUS = Corpus()


def villain(*words: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Enter a program, which is given these words."""

    def enter(program: Callable[[], None]) -> Callable[[], None]:
        def build(material: Material) -> Case:
            files = {"link": Link("../victim/file.txt"), "pipe": Fifo()}
            return Case(words, files, entry=f"{__name__}:{program.__name__}")

        CORPUS.case(program.__name__.replace("_", "-"))(build)
        return program

    return enter


@villain("--json")
def well() -> None:
    print("{}")


@villain()
def refuses() -> None:
    sys.stderr.write("limi: no; try yes\n")
    sys.exit(2)


@villain()
def raises() -> None:
    raise KeyError("x")


@villain()
def says_nothing() -> None:
    sys.exit(4)


@villain()
def says_two_things() -> None:
    sys.stderr.write("limi: no\nlimi: no again\n")
    sys.exit(4)


@villain()
def did_not_foresee() -> None:
    sys.stderr.write("limi: unexpected error: x; LIMI_DEBUG=1 shows where\n")
    sys.exit(4)


@villain()
def crashes() -> None:
    ctypes.string_at(0)


@villain()
def computes_without_end() -> None:
    while True:
        pass


@villain()
def waits_without_end() -> None:
    time.sleep(10_000)


@villain()
def litters() -> None:
    Path("left").write_text("x")


@villain()
def litters_elsewhere() -> None:
    Path(os.environ["TMPDIR"], "left").write_text("x")


@villain()
def runs_code() -> None:
    Path("ran").write_text("x")


@villain()
def overwrites() -> None:
    Path(".env").write_text("x")


@villain()
def deletes() -> None:
    Path("notes.txt").unlink()


@villain()
def writes_through_a_link() -> None:
    Path("link").write_text("x")


@villain()
def replaces_a_pipe() -> None:
    Path("new").write_text("x")
    os.replace("new", "pipe")


@villain()
def writes_outside() -> None:
    Path(__file__).with_suffix(".outside").write_text("x")


@villain()
def runs_a_program() -> None:
    os.system("true")


@villain("--json")
def prints_no_json() -> None:
    print('{"a": NaN}')


@villain("--json")
def prints_twice() -> None:
    print("noise\n{}")


@villain()
def steers_the_terminal() -> None:
    print("\x1b[31m")


@villain()
def turns_text_around() -> None:
    sys.stderr.write("limi: no \u202e\n")
    sys.exit(2)


@villain()
def prints_what_is_no_text() -> None:
    os.write(1, b"\xff\n")


@villain()
def prints_and_fails() -> None:
    print("done")
    refuses()


@villain()
def exits_oddly() -> None:
    sys.stderr.write("limi: no\n")
    sys.exit(77)


@villain()
def leaves_a_process() -> None:
    if os.fork() == 0:
        time.sleep(10_000)


@villain("--json")
def leaves_a_thread() -> None:
    threading.Thread(target=time.sleep, args=(10_000,), daemon=True).start()
    print("{}")


@villain()
def fills_memory() -> None:
    bytearray(1 << 40)


@villain()
def fills_the_disk() -> None:
    with open("left", "wb") as file:
        for _ in range(1000):
            file.write(bytes(1 << 20))
