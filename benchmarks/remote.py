"""Models behind an address: throughput against a load generator, overhead, a repeated run, power.

The server sleeps 5 ms a call and 20 us a row, in a process of its own on loopback. Its load
generator sends requests that are ready, over kept connections, and reads the answers unparsed:
what the server can give at the same number of requests in flight, of the same size.
"""

import argparse
import cProfile
import http.client
import json
import multiprocessing
import pstats
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd

from limi import models
from limi.remote.options import Remote
from limi.search.chances import ask_chances

CALL, ROW = 0.005, 20e-6  # seconds


def tell(name, value, **more):
    print(json.dumps({"name": name, "value": round(value, 3), **more}), flush=True)


def serve(pipe):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1

        def do_POST(self):
            body = self.rfile.read(int(self.headers["content-length"]))
            n = body.count(b"],[") + 1
            time.sleep(CALL + ROW * n)
            answer = b'{"predictions":[' + b",".join([b"0.25"] * n) + b"]}"
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    pipe.send(server.server_address[1])
    server.serve_forever()


def table(n, seed=0):
    """Rows like those of the Adult census: six numbers and seven texts, all different."""
    rng = np.random.default_rng(seed)
    numbers = {f"n{i}": rng.integers(0, 10**6, n) for i in range(6)}
    texts = {f"t{i}": rng.choice([f"level {k}" for k in range(12)], n) for i in range(7)}
    return pd.DataFrame(numbers | texts)


def generate_load(port, frame, size, in_flight):
    """Rows per second of requests that were made before."""
    rows = [json.dumps(row) for row in frame.to_numpy().tolist()]
    head = '{"dataframe_split":{"columns":[],"data":['
    bodies = [
        (head + ",".join(rows[at : at + size]) + "]}}").encode() for at in range(0, len(rows), size)
    ]
    left = iter(bodies)
    lock = threading.Lock()

    def work():
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while True:
            with lock:
                body = next(left, None)
            if body is None:
                return
            connection.request("POST", "/invocations", body)
            connection.getresponse().read()

    threads = [threading.Thread(target=work) for _ in range(in_flight)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(frame) / (time.perf_counter() - start)


def open_model(port, **given):
    return models.load(f"mlflow:http://127.0.0.1:{port}", favorable=1, remote=Remote(**given))


def throughput(port, in_flight, n=60_000):
    frame = table(n)
    model = open_model(port, concurrency=in_flight)
    model.score(table(40_000, seed=1))  # the size of requests settles
    size = model.exchange._pace._now
    best, ours, work = [], [], []
    for seed in range(2, 5):  # in turn, because the machine is not ours alone
        best.append(generate_load(port, frame, size, in_flight))
        frame = table(n, seed)
        start, busy = time.perf_counter(), time.process_time()
        model.score(frame)
        ours.append(n / (time.perf_counter() - start))
        work.append((time.process_time() - busy) / n)
    model.exchange.rest()
    share = max(ours) / max(best)
    tell(
        f"throughput, {in_flight} in flight, against the load generator",
        share,
        bar=0.9,
        ok=share >= 0.9,
        rows_per_second=round(max(ours)),
        load_generator=round(max(best)),
        rows_a_request=size,
        client_us_a_row=round(1e6 * min(work), 2),
    )


def overhead(cache, profile=False):
    """Seconds of this process per row for everything but the network, in batches of 1,000."""
    model = open_model(1, concurrency=1, cache=cache)
    exchange = model.exchange
    exchange._pace._now = exchange._pace._most = 1000
    answer = json.dumps({"predictions": [0.25] * 1000}).encode()
    exchange._client.send = lambda request: answer
    parts = [table(1000, seed) for seed in range(100)]
    profiler = cProfile.Profile()
    if profile:
        profiler.enable()
    took = []
    for part in parts:
        start = time.process_time()
        model.score(part)
        took.append(time.process_time() - start)
    if profile:
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(12)
    start = time.process_time()
    for part in parts:
        model.score(part)
    known = (time.process_time() - start) / 100_000
    exchange.rest()
    where = "no file" if cache is None else "a cache file"
    each = 1e6 * float(np.median(took)) / 1000
    tell(f"overhead with {where}, us a row", each, bar=3.0, ok=each <= 3)
    tell(f"overhead with {where}, us a row whose answer is known", 1e6 * known)


def repeat(port):
    """Requests of a second run with the cache."""
    with tempfile.TemporaryDirectory() as folder:
        for run in ("first", "repeated"):
            model = open_model(port, cache=Path(folder, "cache"))
            start = time.perf_counter()
            model.score(table(20_000))
            took = time.perf_counter() - start
            model.exchange.rest()
            tell(f"requests of a {run} run", model.exchange.tally.requests, seconds=round(took, 2))


def chances(pairs=100, runs=20):
    """How often a difference is shown, and by how many questions."""
    rng = np.random.default_rng(0)
    rows = np.arange(pairs, dtype=float)[:, None]
    for mine, other in ((1, 0), (0.9, 0.1), (0.8, 0.2), (0.8, 0.4), (0.7, 0.3), (0.7, 0.5)):

        def score(given, mine=mine, other=other):
            chance = np.where(given[:, 0] % 1 == 0, mine, other)
            return (rng.random(len(given)) < chance).astype(float)

        first = np.ones(pairs)
        told = [ask_chances(score, rows, rows + 0.5, first, 0 * first) for _ in range(runs)]
        shown = np.mean([one.shown.mean() for one in told])
        asked = np.mean([one.queries for one in told]) / pairs
        name = f"chances of {mine:.0%} and {other:.0%}"
        tell(f"{name}: share of pairs shown", shown, questions_per_pair=round(asked))
    false = 0
    for _ in range(10 * runs):
        chance = rng.random(pairs)

        def score(given, chance=chance):
            return (rng.random(len(given)) < chance[np.floor(given[:, 0]).astype(int)]).astype(
                float
            )

        first = (rng.random(pairs) < 0.5).astype(float)
        false += ask_chances(score, rows, rows + 0.5, first, 1 - first).shown.any()
    share = false / (10 * runs)
    tell("equal chances: share of runs with any finding", share, bar=0.05, ok=share <= 0.05)


def main():
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--chances", action="store_true", help="the power of --noisy alone")
    given.add_argument("--profile", action="store_true", help="where the overhead goes")
    options = given.parse_args()
    if options.chances:
        chances()
        return
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(there,), daemon=True)
    server.start()
    port = here.recv()
    try:
        for in_flight in (1, 4, 8):
            throughput(port, in_flight)
        repeat(port)
    finally:
        server.terminate()
    overhead(None, options.profile)
    with tempfile.TemporaryDirectory() as folder:
        overhead(Path(folder, "cache"))


if __name__ == "__main__":
    main()
