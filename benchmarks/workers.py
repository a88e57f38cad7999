"""Workers: how much sooner the same findings are there, one JSON line per figure.

    python benchmarks/workers.py [forest | function | ray | many | million]

`forest` has 100 trees of scikit-learn, `function` is a Python function of some 50 microseconds
a row; both are searched by LIMI over census, and the digest of the findings must be the same for
any number of workers. `many` is the forest with 1, 4, 8 and 16 workers. `million` has the network
and the forest of the benchmarks, a million latents and default settings, and the share of the time
that the model alone would take. A process has one thread.

Beside the clock stands what does not depend on what else the machine does: the seconds that
processors worked, in this process and in workers (on Linux), and how much sooner two cores of their
own would be done with that, if no process ever waited for another.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import hashlib
import json
import time

import numpy as np

import limi
from lab import models
from limi import data, generators
from limi.methods.limi import LIMI
from limi.system.cores import n_cores


def report(name, value, bar=None, *, at_least=True):
    line = {"name": name, "value": round(float(value), 3)}
    if bar is not None:
        line |= {"bar": bar, "ok": bool(value >= bar if at_least else value <= bar)}
    print(json.dumps(line), flush=True)


def forest():
    from sklearn.ensemble import RandomForestClassifier

    table = data.load("census")
    frame = table.frame
    rows = frame.drop(columns=table.target).to_numpy(float)
    return RandomForestClassifier(100, random_state=0).fit(rows, frame[table.target]), 1_000_000


def function():
    def slow(frame):
        """Some 50 microseconds a row, in Python's own loop."""
        told = np.empty(len(frame))
        for place, row in enumerate(frame.to_numpy(float).tolist()):
            merit = 0.0
            for _ in range(55):
                for number, cell in enumerate(row):
                    merit += cell * (0.01 + 0.001 * number)
            told[place] = merit / 55
        sexes = frame["sex"].to_numpy(float)
        return 1 / (1 + np.exp(-(told + 0.3 * sexes - 1.5)))

    return slow, 20_000


class Processors:
    """Seconds that this process and all that it has started worked, by phase of a run."""

    def __init__(self):
        self.spent, self._phase, self._before = {}, None, {}

    def __call__(self, told):
        if told.phase != self._phase:
            now = self._count()
            phase = self.spent.setdefault(self._phase, {})
            for pid, seconds in now.items():
                phase[pid] = phase.get(pid, 0.0) + seconds - self._before.get(pid, 0.0)
            self._phase, self._before = told.phase, now

    def _count(self):
        tick, me = os.sysconf("SC_CLK_TCK"), os.getpid()
        parents, seconds = {}, {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(words[1])
            seconds[int(folder.name)] = (int(words[11]) + int(words[12])) / tick

        def is_ours(pid):
            while pid > 1 and pid != me:
                pid = parents.get(pid, 0)
            return pid == me

        ours = {pid: told for pid, told in seconds.items() if pid != me and is_ours(pid)}
        return {me: time.process_time(), **ours}

    def tell(self):
        """In all, of this process, and until two cores are done."""
        phases = [list(self.spent.get(name, {0: 0.0}).items()) for name in MEASURED]
        whole = sum(seconds for phase in phases for _, seconds in phase)
        mine = sum(seconds for phase in phases for pid, seconds in phase if pid == os.getpid())
        told = [[seconds for _, seconds in phase] for phase in phases]
        return whole, mine, sum(max(sum(one) / 2, max(one)) for one in told)


MEASURED = ("labels", "search", "second_check")


def search(model, n_latents, **given):
    """Seconds of the search with its labels, and the digest of what was found."""
    table = data.load("census")
    WORKED.__init__()
    start = time.perf_counter()
    result = limi.audit(
        model,
        table.frame,
        protected=["sex"],
        target=table.target,
        schema=table.schema,
        method=LIMI(n_latents=n_latents),
        max_rows=None,
        rate_rows=0,
        on_progress=WORKED,
        **given,
    )
    whole = time.perf_counter() - start
    found = result.found
    digest = hashlib.sha256(b"".join(a.tobytes() for a in (found.rows, found.score, found.partner)))
    spent = {name: told["seconds"] for name, told in result.summary.phases.items()}
    PHASES.clear()
    PHASES.update(spent)
    seconds = sum(spent[name] for name in MEASURED)
    return seconds, whole, digest.hexdigest(), len(found)


WORKED = Processors()  # in the last search
PHASES = {}  # seconds of the last search, by phase


def compare(name, made, counts, bar=None, **given):
    model, n_latents = made
    one = None
    for workers in counts:
        seconds, whole, digest, n = search(model, n_latents, workers=workers, **given)
        worked, mine, ends = WORKED.tell()
        one = one or (seconds, whole, digest, worked)
        label = f"{name}, {n_latents:,} latents, {n:,} findings, {workers} workers"
        report(f"{label}: seconds of labels, search and second check", seconds)
        report(f"{label}: seconds in all", whole)
        report(f"{label}: processor seconds of these phases", worked)
        if workers != counts[0]:
            report(f"{label}: of these, in this process", mine)
            report(f"{label}: processor seconds for each of one process", worked / one[3])
            if workers == 2:
                report(f"{label}: times as fast by processor seconds, at best", one[3] / ends)
            report(f"{label}: the same bytes", digest == one[2], 1)
            report(f"{label}: times as fast", one[0] / seconds, bar)
            report(f"{label}: efficiency", one[0] / seconds * counts[0] / workers)


def ray():
    """Ray and local workers in turns, each as fast as it ever was; a longer search as well, because
    Ray's actors import for a second or two before they help."""
    model, n_latents = forest()
    ways = {"local": {}, "ray": {"cluster": "ray"}}
    for n, turns in ((n_latents, 2), (3 * n_latents, 1)):
        seconds, worked, digests = {}, {}, set()
        for _ in range(turns):
            for name, given in ways.items():
                took, _, digest, _ = search(model, n, workers=2, **given)
                digests.add(digest)
                seconds[name] = min(took, seconds.get(name, took))
                worked[name] = min(WORKED.tell()[0], worked.get(name, np.inf))
        words = f"forest, {n:,} latents, 2 workers"
        report(f"{words}: the same bytes by Ray", len(digests) == 1, 1)
        report(f"{words}: Ray's speed as a share of local", seconds["local"] / seconds["ray"], 0.9)
        report(
            f"{words}: Ray's share by processor seconds, Ray's own services counted",
            worked["local"] / worked["ray"],
        )


def million():
    """Seconds of everything between the table and checked findings; bars are half of before."""
    for kind, bar in (("dnn", 4.2), ("rf", 8.75)):
        table = data.load("census")
        for workers in (1, 2):
            start = time.perf_counter()
            result = limi.audit(
                models.train("census", kind),
                table.frame,
                protected=["sex"],
                target=table.target,
                schema=table.schema,
                table_name="census",
                method="limi",
                max_rows=None,
                rate_rows=0,
                workers=workers,
            )
            spent = result.summary.phases
            names = ("generator", "labels", "search", "second_check")
            seconds = sum(spent[name]["seconds"] for name in names)
            words = f"census {kind}, 1,000,000 latents, {workers} workers"
            whole = time.perf_counter() - start
            report(
                f"{words}: seconds with generator, labels, second check",
                seconds,
                bar,
                at_least=False,
            )
            report(f"{words}: seconds in all", whole)
        # Natural people, as the search asks for: rows of the table repeat, which a forest likes.
        problem = result.problem
        made = generators.get("trees").fit(problem.rows, problem.schema, np.random.default_rng(0))
        some = made.decode(made.sample_latents(1 << 17, np.random.default_rng(1)))
        problem.target.score(some)
        start = time.perf_counter()
        for at in (0, 1 << 16):
            problem.target.score(some[at : at + (1 << 16)])
        alone = (time.perf_counter() - start) / len(some) * result.summary.queries
        report(f"census {kind}: seconds of the model alone, on these cores", alone)
        report(f"census {kind}: share of the model in the time of two workers", alone / seconds)


PARTS = {
    "million": million,
    "forest": lambda: compare("forest of 100 trees", forest(), (1, 2), 1.7),
    "function": lambda: compare("function of 50 us a row", function(), (1, 2), 1.7),
    "ray": ray,
    "many": lambda: compare(
        "forest of 100 trees", forest(), [n for n in (1, 4, 8, 16) if n <= n_cores()]
    ),
}

if __name__ == "__main__":
    for part in sys.argv[1:] or [name for name in PARTS if name not in ("many", "million")]:
        PARTS[part]()
