"""A proxy on loopback that spoils a share of the requests, each in one of ten ways.

What the client sees of a spoiled request is never a good answer, but for three: one that is late,
one that overtakes another, and one that comes twice.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress

import numpy as np

WAYS = (
    "drop",
    "delay",
    "429",
    "500",
    "truncated",
    "reordered",
    "duplicated",
    "wrong length",
    "garbage",
    "slow drip",
)
_BUSY = b"HTTP/1.1 %s\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nbusy"


class Proxy:
    """Passes requests on; by a fixed draw some of them fail."""

    def __init__(self, host, port, share=0.3, seed=0, ways=WAYS, pause=0.05):
        self._there = (host, port)
        self._rng = np.random.default_rng(seed)
        self._share, self._ways, self._pause = share, ways, pause
        self._lock = threading.Lock()
        self.seen = Counter()
        self.delivered = Counter()  # bodies of requests that got a good answer

    def draw(self):
        with self._lock:
            way = str(self._rng.choice(self._ways)) if self._rng.random() < self._share else "good"
            self.seen[way] += 1
            return way

    def handle(self, client):
        with client, suppress(OSError):
            rest = b""
            while True:
                request, body, rest = read_message(client, rest)
                if not request:
                    return
                if not self._answer(client, request, body):
                    return

    def _answer(self, client, request, body):
        """Answer one request; may the connection be used again?"""
        way = self.draw()
        if way == "drop":
            return False
        if way in ("429", "500"):
            client.sendall(_BUSY % {"429": b"429 Slow", "500": b"500 Oops"}[way])
            return True
        with socket.create_connection(self._there) as server:
            server.sendall(request)
            whole, content, _ = read_message(server, b"")
        head = whole[: len(whole) - len(content)]
        if way in ("good", "delay", "reordered", "duplicated"):
            with self._lock:
                self.delivered[body] += 1
        if way in ("delay", "reordered"):
            time.sleep(self._pause)  # others overtake it meanwhile
        if way == "truncated":
            client.sendall(whole[: len(whole) - max(1, len(content) // 2)])
            return False
        if way == "wrong length":
            content = content.replace(b"[", b"[0.25, ", 1)
            client.sendall(_with_length(head, content) + content)
            return True
        if way == "garbage":
            content = bytes(range(128, 256))
            client.sendall(_with_length(head, content) + content)
            return True
        if way == "slow drip":
            for at in range(3):
                client.sendall(whole[at : at + 1])
                time.sleep(self._pause)
            return False
        client.sendall(whole * (2 if way == "duplicated" else 1))
        return True


def _with_length(head, content):
    lines = [
        line
        for line in head.rstrip().split(b"\r\n")
        if not line.lower().startswith(b"content-length")
    ]
    return b"\r\n".join([*lines, b"Content-Length: %d" % len(content)]) + b"\r\n\r\n"


def read_message(sock, rest):
    """One whole message, its body, and what came after it."""
    while b"\r\n\r\n" not in rest:
        part = sock.recv(65536)
        if not part:
            return b"", b"", b""
        rest += part
    head, _, body = rest.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        part = sock.recv(65536)
        if not part:
            return b"", b"", b""
        body += part
    return head + b"\r\n\r\n" + body[:length], body[:length], body[length:]


@contextmanager
def spoiled(address, **given):
    """The address of a proxy before a server, and the proxy."""
    host, _, port = address.removeprefix("http://").partition(":")
    proxy = Proxy(host, int(port), **given)
    server = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def accept():
        while not stop.is_set():
            with suppress(OSError):
                client, _ = server.accept()
                threading.Thread(target=proxy.handle, args=(client,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}", proxy
    finally:
        stop.set()
        with suppress(OSError):
            socket.create_connection(server.getsockname(), timeout=1).close()
        thread.join(5)
        server.close()
