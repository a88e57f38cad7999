"""Small real servers on loopback: one model behind every shape, and what they were asked."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import ssl
import threading
from collections import Counter
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd

COLUMNS = ["age", "hours", "wealth", "sex", "job"]


def people(n=300, seed=0):
    """A table with whole numbers, real ones, text and missing cells."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 70, n)
    frame = pd.DataFrame(
        {
            "age": age,
            "hours": rng.integers(10, 60, n),
            "wealth": np.round(rng.normal(size=n), 3),
            "sex": rng.choice(["f", "m"], n),
            "job": rng.choice(["clerk", "cook", "smith"], n),
        }
    )
    frame.loc[frame.index[::17], "wealth"] = np.nan
    frame["ok"] = (favorable_chance(frame) > 0.5).astype(int)
    return frame


def favorable_chance(frame):
    """The model: a logistic function of all columns, in which men have it easier."""
    wealth = frame["wealth"].astype(float).fillna(0.0)
    margin = (
        0.031 * (frame["age"].astype(float) - 44)
        + 0.052 * (frame["hours"].astype(float) - 35)
        + 0.61 * wealth
        + 0.83 * (frame["sex"] == "m").astype(float)
        - 0.44 * (frame["job"] == "cook").astype(float)
        - 0.2171
    )
    return (1 / (1 + np.exp(-margin))).to_numpy()


class App:
    """Answers requests of every shape with a function of a frame."""

    def __init__(self, model=favorable_chance, columns=COLUMNS):
        self.model, self.columns = model, columns
        self.requests = 0
        self.rows = Counter()  # by row, how often it was answered
        self.headers = []
        self.prompts = []
        self.say = lambda score: "Yes." if score > 0.5 else "No."  # as a chat model
        self.lock = threading.Lock()
        self.before = None  # called with each request: a status and a body instead of an answer

    @property
    def asked(self):
        return sum(self.rows.values())

    def score(self, records):
        frame = pd.DataFrame(records, columns=self.columns)
        with self.lock:
            self.rows.update(map(tuple, frame.astype(object).where(frame.notna(), None).to_numpy()))
        return np.asarray(self.model(frame)).tolist()

    def answer(self, method, path, headers, body):
        """Status, type and body."""
        with self.lock:
            self.requests += 1
            self.headers.append(dict(headers))
        if self.before is not None and (given := self.before(method, path, body)) is not None:
            return given
        if method == "GET" and path == "/v2/models/credit":
            return 200, "application/json", json.dumps({"name": "credit", "inputs": []}).encode()
        if method == "POST" and path in ROUTES:
            return ROUTES[path](self, body)
        return 404, "application/json", b'{"error": "no such place"}'


def _json(tree):
    return 200, "application/json", json.dumps(tree).encode()


def _mlflow(app, body):
    split = json.loads(body)["dataframe_split"]
    unknown = [name for name in split["columns"] if name not in app.columns]
    if unknown:
        return 400, "application/json", json.dumps({"message": f"unknown {unknown[0]}"}).encode()
    frame = pd.DataFrame(split["data"], columns=split["columns"])
    return _json({"predictions": app.score(frame.to_dict("list"))})


def _instances(app, body):
    given = json.loads(body)["instances"]
    if given and isinstance(given[0], list):
        given = [dict(zip(app.columns, row, strict=True)) for row in given]
    return _json({"predictions": app.score(given)})


def _csv(app, body):
    lines = list(csv.reader(io.StringIO(body.decode())))
    frame = pd.DataFrame(lines, columns=app.columns).replace("", None)
    for name in ("age", "hours"):
        frame[name] = frame[name].astype(int)
    frame["wealth"] = frame["wealth"].astype(float)
    scores = app.score(frame.to_dict("list"))
    return 200, "text/csv", "\n".join(map(repr, scores)).encode()


def _oip(app, body):
    tree = json.loads(body)
    columns = {one["name"]: one["data"] for one in tree["inputs"]}
    assert all(one["shape"] == [len(one["data"]), 1] for one in tree["inputs"])
    scores = app.score(columns)
    out = {"name": "predict", "datatype": "FP64", "shape": [len(scores)], "data": scores}
    return _json({"model_name": "credit", "outputs": [out]})


def _home_made(app, body):
    given = json.loads(body)["people"]
    return _json({"result": [{"id": i, "p": p} for i, p in enumerate(app.score(given))]})


def _one_by_one(app, body):
    return _json({"p": app.score([json.loads(body)["person"]])[0]})


def _chat(app, body):
    """Reads the person out of the prompt, as a language model would have to."""
    tree = json.loads(body)
    prompt = tree["messages"][-1]["content"]
    person = dict(re.findall(r"^- (\w+): (.*)$", prompt, re.MULTILINE))
    wealth = None if person["wealth"] == "unknown" else float(person["wealth"])
    person |= {"age": int(person["age"]), "hours": int(person["hours"]), "wealth": wealth}
    (score,) = app.score([person])
    with app.lock:
        app.prompts.append(tree)
    choice = {"finish_reason": "stop", "message": {"content": app.say(score)}}
    if tree.get("logprobs"):
        tokens = {"Yes": score * 0.9, " no": (1 - score) * 0.9, "Well": 0.1}
        told = [{"token": t, "logprob": math.log(p)} for t, p in tokens.items()]
        choice["logprobs"] = {"content": [{"top_logprobs": told}]}
    return _json({"choices": [choice]})


ROUTES = {
    "/v1/chat/completions": _chat,
    "/invocations": _mlflow,
    "/v1/models/credit:predict": _instances,
    "/csv": _csv,
    "/v2/models/credit/infer": _oip,
    "/score": _home_made,
    "/score-one": _one_by_one,
}


@contextmanager
def serving(app, tls=False):
    """The address of a server that answers with an app."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet

        def _answer(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, kind, content = app.answer(self.command, self.path, self.headers, body)
            self.send_response(status)
            extra = kind if isinstance(kind, dict) else {"Content-Type": kind}
            for name, value in extra.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = _answer

        def log_message(self, *args):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request, client_address):
            pass  # a client that has gone away

    server = Server(("127.0.0.1", 0), Handler)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(Path(__file__).with_name("self_signed.pem"))
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
