"""Requests that nobody should send: every one ends in a page or in a sentence, and touches no file.

python -m tests.explore.fuzz --requests 10000 --seed 0
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from urllib.parse import quote

import numpy as np

PATHS = [
    *("/", "/findings", "/people", "/person", "/person/f0", "/person/r3", "/person/p1", "/where"),
    *("/map", "/record", "/static/explore.js", "/static/explore.css", "/favicon.ico"),
    *("/export/csv", "/export/parquet", "/export/pytest", "/job/1", "/job/0", "/job/999999"),
]
POSTS = [
    *(f"/person/f0/{action}" for action in ("ask", "flip", "steady", "walk", "alike", "bookmark")),
    *("/where/look", "/job/1/cancel", "/record/forget", "/person/m9/ask"),
]
NASTY = [
    *("", "0", "-1", "1e309", "nan", "inf", "1e-320", "99999999999999999999", "missing", "\x00"),
    *("../../etc/passwd", "/etc/passwd", "%2e%2e%2f", "file:///etc/passwd", "C:\\windows", "~"),
    *("<script>alert(1)</script>", "{{ 7 * 7 }}", "{% include 'x' %}", "${jndi:ldap://x}"),
    *("' OR 1=1 --", "\ud7ff", "\u202e", "a" * 1500, "\r\nX-Evil: 1", "0x10", "1_000", " 5 "),
    *("True", "None", "[]", "{}", "\u0661", "c0", "1,2,3", "50", "35", "clerk"),
]
NAMES = [
    *(
        "c0",
        "c0.low",
        "c0.high",
        "c0.below",
        "c1.low",
        "c2",
        "c3",
        "g0",
        "direction",
        "severity.low",
    ),
    *("naturalness.high", "sort", "down", "page", "draw", "x", "y", "people", "token", "note"),
    *("cell-0", "cell-1", "cell-2", "cell-3", "cell-99", "cell-", "cell-x", "number", "change"),
]
METHODS = ["GET"] * 6 + ["POST"] * 6 + ["PUT", "DELETE", "HEAD", "OPTIONS", "PATCH", "TRACE"]


def pairs_of(rng):
    return [
        (NAMES[rng.integers(len(NAMES))], NASTY[rng.integers(len(NASTY))])
        for _ in range(rng.integers(0, 6))
    ]


def encode(pairs, rng):
    raw = rng.random() < 0.15  # not even encoded
    return "&".join(f"{k}={v if raw else quote(v, safe='')}" for k, v in pairs)


def request_of(rng, browser):
    """Method, address, headers and body of one request."""
    method = METHODS[rng.integers(len(METHODS))]
    path = (POSTS if method == "POST" else PATHS)[
        rng.integers(len(POSTS if method == "POST" else PATHS))
    ]
    if rng.random() < 0.15:
        path += "/" + quote(NASTY[rng.integers(len(NASTY))], safe="")
    if rng.random() < 0.1:
        path = "/person/" + quote(NASTY[rng.integers(len(NASTY))], safe="")
    headers = {"X-Limi": "part"} if rng.random() < 0.5 else {}
    if rng.random() < 0.05:
        headers["Host"] = ["evil.example", "127.0.0.1", "localhost:1", "[::1"][rng.integers(4)]
    if rng.random() < 0.05:
        headers["Origin"] = "http://evil.example"
    if rng.random() < 0.05:
        headers["Cookie"] = "limi-explore-8000=" + "a" * int(rng.integers(0, 300))
    body = b""
    if method in ("POST", "PUT", "PATCH"):
        pairs = pairs_of(rng)
        if rng.random() < 0.85:
            pairs.insert(0, ("token", browser.token))
        body = encode(pairs, rng).encode("utf-8", "replace")
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        if rng.random() < 0.05:
            headers["Content-Type"] = ["application/json", "multipart/form-data", ""][
                rng.integers(3)
            ]
        if rng.random() < 0.03:
            body = rng.bytes(int(rng.integers(0, 90_000)))
    query = encode(pairs_of(rng), rng) if rng.random() < 0.7 else ""
    address = path + (f"?{query}" if query else "")
    return method, "".join(c for c in address if c.isprintable() and c != " "), headers, body


def digests(folder):
    """What a folder holds, but for the record, which grows."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "explore.jsonl"
    }


def fuzz(browser, n, seed=0):
    """Send n requests; how often each status came, and what should not have."""
    import httpx

    rng = np.random.default_rng(seed)
    told, wrong = Counter(), []
    for number in range(n):
        method, address, headers, body = request_of(rng, browser)
        try:
            answer = browser.client.request(
                method, address, headers=headers, content=body, follow_redirects=False
            )
        except (httpx.InvalidURL, UnicodeError):  # no client can send it
            told["unsent"] += 1
            continue
        told[answer.status_code] += 1
        text = "" if address.startswith("/export") else answer.text
        silent = answer.status_code >= 400 and method != "HEAD" and not answer.content
        if (
            answer.status_code >= 500
            or silent
            or "Traceback" in text
            or "alert(1)</script>" in text
            or "root:x:" in text
            or "X-Evil" in answer.headers
        ):
            wrong.append((number, method, address, answer.status_code, text[-300:]))
    return told, wrong


def main():
    from tests.explore import conftest

    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = conftest.make_run(Path(place) / "run")
        before = digests(folder)
        x = conftest.open_run(folder, record=folder / "explore.jsonl")
        told, wrong = fuzz(conftest.Browser(x), given.requests, given.seed)
        touched = digests(folder) != before
        x.jobs.close()
    print(json.dumps({"requests": dict(told), "wrong": wrong[:20], "files_touched": touched}))
    sys.exit(bool(wrong or touched))


if __name__ == "__main__":
    main()
