"""Models written in Python that raise, exit, print, wander off, or answer what no model should."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.hostile.case import Around, Case
from tests.hostile.draw import Draw
from tests.hostile.kinds._corpus import Corpus
from tests.hostile.material import LONG, PEOPLE, SMALL, Material
from tests.hostile.nasty import WORDS

SHARE = 10
CORPUS = Corpus()

_HEAD = """
import os, signal, sys, threading, time, warnings
import numpy as np
import pandas as pd
calls = []
"""

ANSWERS = (
    *(
        "np.full(n, 0.7)",
        "[0.7] * n",
        "np.full(n, np.nan)",
        "np.full(n, np.inf)",
        "np.full(n, 2.0)",
    ),
    *("np.full(n, -1.0)", "np.full((n, 2), 0.5)", "np.full((n, 1), 0.7)", "np.full((n, 3), 0.3)"),
    *("np.full(n + 1, 0.7)", "np.full(max(n - 1, 0), 0.7)", "[]", "None", "0.7", "'x'", "'0.7'"),
    *("['yes'] * n", "['no', 'yes'] * n", "['maybe'] * n", "[None] * n", "[True] * n", "b'x' * n"),
    *("np.ma.masked_all(n)", "np.ma.array(np.full(n, 0.7), mask=np.arange(n) == 0)", "frame", "n"),
    *("frame['sex']", "(0.7 for _ in range(n))", "iter([0.7] * n)", "{i: 0.7 for i in range(n)}"),
    *("np.full(n, 0.7 + 0j)", "np.array([object()] * n)", "[[0.7]] * n", "[[0.2, 0.9]] * n"),
    *("[0.7] * (n - 1) + ['x']", "[10**400] * n", "np.full(n, '0.7')", "range(n)", "[[]] * n"),
    *("pd.Series(np.full(n, 0.7), index=range(n, 0, -1))", "pd.array([0.7] * (n - 1) + [pd.NA])"),
    *("np.full(n, 0.7, np.float16)", "np.full(n, 1, np.uint8)", "np.full(n, np.datetime64('now'))"),
    *(
        "pd.Series(['yes'] * n, dtype='category')",
        "np.full(n, 0.7).astype(object)",
        "np.full(n, 1)",
    ),
    *("type", "ValueError('x')", "lambda: 0.7", "{0.7}", "np.matrix([0.7] * n)", "pd.NA", "np.nan"),
    *("np.broadcast_to(0.7, (n,))", "memoryview(np.full(n, 0.7))", "np.full(n, 0.5)", "[0, 1] * n"),
    *("np.full((1, n), 0.7)", "np.full((n, 1, 1), 0.7)", "np.empty((n, 0))", "['\\x1b[31m'] * n"),
    *("frame['income'] / 0", "np.arange(n) / max(n, 1)", "frame.to_numpy()", "frame[['income']]"),
    *(
        "__import__('torch').full((n,), 0.7)",
        "__import__('torch').full((n,), 0.7).requires_grad_()",
    ),
    *("__import__('scipy.sparse').sparse.eye(n, 1)", "__import__('decimal').Decimal('0.7')"),
    *("np.full(n, 1 + 1e-12)", "np.full(n, np.nextafter(0.5, 1))", "np.full(n, 5e-324)"),
)

DEEDS = (
    *(
        "pass",
        "raise ValueError('no')",
        "raise SystemExit(0)",
        "sys.exit('bye')",
        "1 / 0",
        "exit()",
    ),
    *("raise KeyError", "raise RuntimeError('a\\nb\\nc')", "raise ValueError('\\x1b[31m' * 9)"),
    *("raise ValueError('x' * 10**6)", "raise ValueError('\\ud800')", "raise Silent()", "assert 0"),
    *("raise MemoryError", "raise RecursionError", "raise GeneratorExit", "raise StopIteration"),
    *(
        "raise BaseException('x')",
        "raise ExceptionGroup('g', [ValueError(1)])",
        "raise Warning('w')",
    ),
    *("raise UnicodeDecodeError('utf-8', b'x', 0, 1, 'y')", "raise OSError(28, 'full')", "dive(0)"),
    *("raise BrokenPipeError(32, 'gone')", "raise ImportError('x')", "import no_such_module"),
    *("print('noise')", "print('{}')", "os.write(1, b'noise\\n')", "sys.stdout.write('\\x1b[31m')"),
    *("print('noise', file=sys.stderr)", "sys.__stdout__.write('noise')"),
    *(
        "sys.stdout.close()",
        "sys.stdout = None",
        "os.close(1)",
        "sys.stderr = None",
        "print(1 / 0)",
    ),
    *(
        "os.chdir('..')",
        "os.chdir('/')",
        "warnings.warn('noise')",
        "warnings.simplefilter('error')",
    ),
    *("np.seterr(all='raise')", "time.sleep(0.01)", "sys.setrecursionlimit(200)", "frame.drop(0)"),
    *("frame.iloc[:] = None", "frame['new'] = 1", "frame.drop(columns='sex', inplace=True)"),
    *("frame.drop(frame.index, inplace=True)", "frame.columns = range(len(frame.columns))"),
    *(
        "threading.Thread(target=dive, args=(0,)).start()",
        "threading.Thread(target=sys.exit).start()",
    ),
    *(
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
        "os.environ.clear()",
    ),
    *("signal.signal(signal.SIGINT, signal.SIG_IGN)", "np.random.seed(0)", "sys.argv.clear()"),
    *("raise KeyboardInterrupt", "os.kill(os.getpid(), signal.SIGINT)", "sys.path.clear()"),
    *("sys.settrace(lambda *given: None)", "del frame", "globals().clear()", "sys.stdin.read()"),
    *(
        "raise limi_error()",
        "import gc; gc.disable()",
        "sys.excepthook = None",
    ),
    *(
        "import logging; logging.basicConfig(level=0); logging.error('noise')",
        "sys.modules.pop('os')",
    ),
)
"""What a model does before it answers. None writes a file, and none leaves the process; none breaks
a library that limi works with, for what fails then can be anything, and the net below tells it."""

_HELPERS = """
class Silent(Exception):
    def __str__(self):
        raise ValueError("no words")

def dive(depth):
    return dive(depth + 1)

def limi_error():
    from limi.errors import CorruptStore
    return CorruptStore("said by the model \\x1b[31m")
"""

_MODELS = (
    "f",
    "Model().predict",
    "Model()",
    "Proba()",
    "Odd()",
)
_CLASSES = """
class Model:
    classes_ = {classes}
    def predict(self, frame):
        return f(frame)

class Proba(Model):
    def predict_proba(self, frame):
        return f(frame)

class Odd(Proba):
    n_features_in_ = {count}
    feature_names_in_ = {names}
    def decision_function(self, frame):
        return f(frame)
"""
_LISTS = (
    *(
        "['no', 'yes']",
        "[0, 1]",
        "None",
        "[]",
        "['yes']",
        "np.array([['a']])",
        "3",
        "'ny'",
        "[None]",
    ),
    *("['income', 'debt', 'sex']", "['x']", "[float('nan')]", "['no', 'yes', 'maybe']", "{}", "-1"),
)


def source(
    deed: str = "pass",
    answer: str = ANSWERS[0],
    *,
    when: str = "True",
    first: str = "",
    last: str = "",
) -> bytes:
    """A file with a model `f` that does something and answers something."""
    text = (
        f"{_HEAD}{_HELPERS}\n{first}\n"
        f"def f(frame, labels=None):\n"
        f"    n = len(frame)\n"
        f"    calls.append(n)\n"
        f"    if {when}:\n"
        f"        {deed}\n"
        f"        return {answer}\n"
        f"    return np.full(n, 0.7)\n"
        f"{last}\n"
    )
    return text.encode("utf-8", "surrogatepass")


def asked(material: Material, program: bytes, how: int = 0, place: str = "f", **more: Any) -> Case:
    """A command that runs a program."""
    model = ("--model", f"python:m.py:{place}")
    more = {"chatty": True, "exits": frozenset({0, 2, 4, 130}), **more}
    if how == 3:
        files = {**material.files("people.csv", "model.skops", "run"), "m.py": program}
        words = ("repair", "run", "--out", "out", "--seeds", "1", "--no-model", "--json")
        return Case((*words, "--fit", f"m.py:{place}"), files, ("out",), **more)
    files = {**material.files("people.csv"), "m.py": program}
    if how == 0:
        return Case(("test", *PEOPLE, *model, *SMALL, "--json"), files, **more)
    if how == 1:
        words = ("test", *PEOPLE, *model, *SMALL, "--out", "out")
        return Case(words, files, ("out",), **more)
    words = (
        "compare",
        *PEOPLE,
        *model,
        "--methods",
        "themis,real",
        "--max-queries",
        "40",
        "--json",
    )
    return Case(words, files, **more)


def drawn(draw: Draw, material: Material) -> Case:
    deed = draw.pick(DEEDS) if draw.chance(60) else "pass"
    answer = draw.pick(ANSWERS) if deed == "pass" or draw.chance(30) else ANSWERS[0]
    when = draw.pick(("True", "len(calls) > 2", "len(calls) > 4", "n > 10", "len(calls) % 2"))
    first = draw.pick(DEEDS).replace("frame", "calls") if draw.chance(10) else ""
    last, place = "", "f"
    if draw.chance(25):
        given = {name: draw.pick(_LISTS) for name in ("classes", "count", "names")}
        last = _CLASSES.format(**given) + f"\nm = {draw.pick(_MODELS)}"
        place = "m"
    elif draw.chance(10):
        attribute = draw.pick(("takes", "columns", "output", "__name__", "n_columns", "notes"))
        last = f"f.{attribute} = {draw.pick(('None', '3', '[]', repr('x'), repr('matrix')))}"
    elif draw.chance(5):
        place = draw.pick(("g", "np", "calls", "Silent", "", "f.x", "f:f", "__name__", *WORDS[:9]))
    program = source(deed, answer, when=when, first=first, last=last)
    return asked(material, program, draw.pick((0, 0, 0, 0, 0, 1, 1, 2, 3)), place)


# -- the corpus ----------------------------------------------------------------------------


def _does(deed: str, *codes: int, how: int = 0, says: str = "", **more: Any) -> Callable[..., Case]:
    exits = frozenset(codes or (4,))
    return lambda material: asked(material, source(deed, **more), how, exits=exits, says=says)


def _answers(answer: str, *codes: int) -> Callable[[Material], Case]:
    exits = frozenset(codes or (4,))
    return lambda material: asked(material, source("pass", answer), exits=exits)


CORPUS.each(
    "does",
    {
        "exit-well": _does("raise SystemExit(0)"),
        "exit-well-on-the-way": _does("sys.exit(0)", when="len(calls) > 4"),
        "exit-well-into-a-folder": _does("sys.exit(0)", how=1),
        "print": _does("print('noise')", 0),
        "print-json": _does("print('{}')", 0),
        "write-to-the-descriptor": _does("os.write(1, b'noise')", 0),
        "close-stdout": _does("sys.stdout.close()", 0),
        "close-what-python-started-with": _does("sys.__stdout__.close()", 0),
        "close-stderr": _does("sys.stderr.close()", 0),
        "take-stderr-away": _does("sys.stderr = None", 0, how=1),
        "go-elsewhere": _does("os.chdir('..')", 0, how=1),
        "go-elsewhere-between-methods": _does("os.chdir('..')", 0, how=2),
        "go-elsewhere-when-loaded": _does("pass", 0, how=2, first="os.chdir('..')"),
        "run-out-of-depth": _does("dive(0)"),
        "raise-without-words": _does("raise Silent()"),
        "raise-a-page": _does("raise ValueError('x' * 10**6)"),
        "raise-what-steers-a-terminal": _does("raise ValueError('\\x1b[31m')"),
        "raise-beyond-exceptions": _does("raise BaseException('x')"),
        "end-a-generator": _does("raise GeneratorExit"),
        "interrupt": _does("raise KeyboardInterrupt", 130),
        "take-the-table-apart": _does("frame.drop(columns='sex', inplace=True)", 0, 4),
        "leave-a-thread-behind": _does(
            "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()", 0
        ),
        "break-a-pipe": _does("raise BrokenPipeError(32, 'gone')"),
        "fit-and-exit": _does("raise SystemExit(0)", how=3, says="raised SystemExit"),
        "fit-and-fill-memory": _does(
            "raise MemoryError('too many')", how=3, says="raised MemoryError: too many"
        ),
        "fit-and-interrupt": _does(
            "raise KeyboardInterrupt", 130, how=3, says="^limi: interrupted"
        ),
    },
)
CORPUS.each(
    "answers",
    {
        "not-a-number": _answers("np.full(n, np.nan)"),
        "infinity": _answers("np.full(n, np.inf)"),
        "too-few": _answers("np.full(n - 1, 0.7)"),
        "too-many": _answers("np.full(n + 1, 0.7)"),
        "nothing": _answers("None"),
        "one-word": _answers("'x'"),
        "unknown-labels": _answers("['maybe'] * n"),
        "masked": _answers("np.ma.array(np.full(n, 0.7), mask=np.arange(n) == 0)"),
        "integers-of-400-digits": _answers("[10**400] * n"),
        "complex": _answers("np.full(n, 0.7 + 0j)"),
        "three-columns": _answers("np.full((n, 3), 0.3)"),
        "missing": _answers("pd.array([0.7] * (n - 1) + [pd.NA])"),
    },
)


def _file(
    program: bytes, place: str = "f", *codes: int, says: str = ""
) -> Callable[[Material], Case]:
    exits = frozenset(codes or (2, 4))
    return lambda material: asked(material, program, place=place, exits=exits, says=says)


CORPUS.each(
    "file",
    {
        "empty": _file(b""),
        "no-python": _file(b"\x00\xff("),
        "zeros": _file(b"\x00" * 100),
        "ends-the-program": _file(b"import sys; sys.exit(0)", says="raised SystemExit"),
        "raises-beyond-exceptions": _file(b"raise BaseException"),
        "is-deep": _file(b"(" * 5000),
        "names-a-class": _file(b"class f: pass"),
        "names-a-module": _file(b"import os as f"),
        "names-nothing": _file(b"def g(x): return 1", "f"),
        "prints": _file(b"print('noise')\ndef f(frame): return [0.7] * len(frame)", "f", 0),
    },
)


@CORPUS.case("an-interrupt-can-be-resumed")
def _(material: Material) -> Case:
    return Case(
        ("test", *LONG, "--out", "out"),
        material.files("people.csv", "model.py"),
        ("out",),
        exits=frozenset({130}),
        chatty=True,
        around=Around(variables={"HOSTILE_STOP": "1"}),
    )
