"""Exploring: a million findings of 15 columns, served by `limi explore` in a process of its own.

    python benchmarks/explore.py            # all figures
    python benchmarks/explore.py --rows N   # with fewer findings

What is told is what a browser waits for: requests over loopback, page and all. Modules are
compiled before the first timed start, as an installation has them.
"""

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

import limi
from limi.audits.problem import prepare
from limi.audits.result import findings_frame
from limi.search.findings import Found
from limi.table.partners import change

COLUMNS = 15
MODEL = """
import numpy as np

def score(frame):
    points = 0.04 * (frame["n0"] - 45) + 0.02 * frame["n1"] - 1 + 0.5 * (frame["sex"] == "M")
    return 1 / (1 + np.exp(-np.asarray(points, dtype=float)))
"""


def tell(name, value, bar=None, **more):
    line = {"name": name, "value": round(value, 3), **more}
    if bar is not None:
        line |= {"bar": bar, "ok": bool(value <= bar)}
    print(json.dumps(line), flush=True)


def table(n, seed):
    rng = np.random.default_rng(seed)
    frame = {"sex": np.array(["F", "M"])[rng.integers(2, size=n)]}
    for k in range(7):
        frame[f"n{k}"] = np.clip(rng.normal(45, 15, n), 0, 99).astype(int) * (k + 1) ** 2 // (k + 1)
    for k in range(7):
        frame[f"k{k}"] = np.array([f"level {j}" for j in range(3 + 5 * k)])[
            (rng.random(n) ** 2 * (3 + 5 * k)).astype(int)
        ]
    return pd.DataFrame(frame)


def make_run(folder, n):
    """A run whose findings are a million rows of the table's kind, with the model's own scores."""
    people = table(20_000, 0)
    people["ok"] = np.arange(len(people)) % 2
    people.to_parquet(folder / "people.parquet")
    (folder / "model.py").write_text(MODEL)
    model = f"python:{folder / 'model.py'}:score"
    options = {"protected": ["sex"], "target": "ok", "favorable": 1, "output": "score"}
    limi.audit(
        model,
        people,
        **options,
        method="natural",
        max_rows=2_000,
        rate_rows=2_000,
        out=folder / "run",
        table_name=str(folder / "people.parquet"),
    )
    problem = prepare(model, people, **options)
    schema, codec = problem.schema, problem.target.codec
    rng = np.random.default_rng(1)
    rows = codec.encode(people)[rng.integers(len(people), size=n)]
    for position in schema.free_index[::2]:
        rows[:, position] = rows[rng.permutation(n), position]
    partner = change(schema, rows, 1 - rows[:, schema.protected_index])
    score, other = (problem.target.score(side) for side in (rows, partner))
    origin = np.array(["natural", "exploit"])[rng.integers(2, size=n)]
    found = Found(
        rows,
        partner,
        score,
        other,
        origin,
        np.zeros(n),
        np.zeros(n, dtype=np.uint8),
        rng.random(n),
        rng.random(n),
    )
    frame = findings_frame(problem.target, found)
    pq.write_table(codec.backend.to_arrow(frame), folder / "run" / "findings.parquet")
    return model


class Page:
    """A browser, as far as time goes."""

    def __init__(self, address):
        self.host, self.port = re.match(r"http://([^:]+):(\d+)", address).groups()
        status, headers, _ = self.ask("GET", address[address.index("/?") :])
        assert status == 200
        self.cookie = headers["set-cookie"].partition(";")[0]
        self.token = re.search(r'data-token="([^"]+)"', self.get("/record"))[1]

    cookie = ""

    def ask(self, method, path, body=None, headers=()):
        connection = http.client.HTTPConnection(self.host, int(self.port), timeout=120)
        connection.request(
            method, path, body, {"Cookie": self.cookie, "X-Limi": "part", **dict(headers)}
        )
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, {k.lower(): v for k, v in answer.getheaders()}, text

    def get(self, path):
        status, _, text = self.ask("GET", path)
        assert status == 200, text[-300:]
        return text

    def post(self, path, **form):
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        status, _, text = self.ask("POST", path, urlencode({"token": self.token, **form}), kind)
        assert status == 200, text[-300:]
        return text


def start(folder, *options):
    """The process, its first line, and seconds until it answered."""
    root = Path(__file__).resolve().parent.parent
    environment = {
        **{k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"},
        "PYTHONPATH": str(root),
        "PYTHONPYCACHEPREFIX": str(folder / "compiled"),
    }
    begun = time.perf_counter()
    command = [sys.executable, "-m", "limi", "explore", str(folder / "run"), "--json", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True)
    text = ""
    while not text.rstrip().endswith("}"):
        line = process.stdout.readline()
        assert line, "limi explore ended"
        text += line
    try:
        page = Page(json.loads(text)["address"])
    except BaseException:
        process.kill()
        raise
    return process, page, time.perf_counter() - begun


def timed(work):
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def peak(process):
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) / 1024


def filters(rng):
    """A query as clicks make one: one to three columns, an order, a page."""
    pairs = []
    for k in rng.choice(COLUMNS, size=rng.integers(1, 4), replace=False).tolist():
        if k == 0:
            pairs.append(("c0", str(rng.integers(2))))
        elif k < 8:
            pairs += [(f"c{k}.low", str(20 * k)), (f"c{k}.high", str(60 * k))]
        else:
            pairs += [(f"c{k}", str(j)) for j in rng.choice(3, size=2, replace=False)]
    pairs += [("sort", f"c{rng.integers(COLUMNS)}"), ("down", str(rng.integers(2)))]
    if rng.random() < 0.3:
        pairs.append(("severity.low", "0.05"))
    return "/findings?" + urlencode(pairs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    given = parser.parse_args()
    rng = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        model = make_run(folder, given.rows)
        start(folder, "--model", model)[0].kill()  # which compiles
        process, page, took = start(folder, "--read-only")
        tell("start-up, read-only, seconds", took, 2.0)
        process.kill()
        process, page, took = start(folder, "--model", model)
        tell("start-up with the model opened and tried, seconds", took, 2.0)
        try:
            tell("first page, seconds", timed(lambda: page.get("/findings")), 1.0)
            took = [timed(lambda: page.get(filters(rng))) for _ in range(100)]
            tell("filter, 95th percentile, ms", 1000 * np.quantile(took, 0.95), 200)
            tell("filter, median, ms", 1000 * np.median(took))
            page.post("/person/f0/ask")
            took = [
                timed(partial(page.post, "/person/f7/ask", **{"cell-1": k})) for k in range(20, 60)
            ]
            names = {}
            exec(MODEL, names)
            people = pd.read_parquet(folder / "people.parquet").iloc[:2]
            alone = np.median([timed(lambda: names["score"](people)) for _ in range(20)])
            tell(
                "what-if answer beyond the model, median, ms", 1000 * (np.median(took) - alone), 50
            )
            tell(
                "what-if answer beyond the model, p95, ms", 1000 * (np.quantile(took, 0.95) - alone)
            )
            with ThreadPoolExecutor(50) as pool:
                paths = [filters(rng) for _ in range(25)] + [f"/person/f{k}" for k in range(25)]
                begun = time.perf_counter()
                told = list(pool.map(lambda path: page.ask("GET", path)[0], paths))
            wrong = sum(status != 200 for status in told)
            tell(
                "50 requests at once, errors",
                wrong,
                0,
                seconds=round(time.perf_counter() - begun, 2),
            )
            page.get("/map?x=c1&y=c2&people=real")
            took = [
                timed(partial(page.get, f"/map?x=c{k}&y=c2&people=real")) for k in (1, 3, 4, 5, 6)
            ]
            tell("map of all findings, median, ms", 1000 * np.median(took), 500)
            tell("peak memory, MB", peak(process), 600)
        finally:
            process.kill()


if __name__ == "__main__":
    main()
