"""Connections whose reads end when the whole answer should have come.

A server that sends a byte now and then keeps within any limit on a single read, in the head of its
answer as in the body; so each read may take what is left of the time for the answer.
"""

from __future__ import annotations

import ssl
from typing import Any

import httpcore
import httpx

from limi.remote.client import Limit

__all__ = ["LimitedTransport"]


class LimitedTransport(httpx.HTTPTransport):
    """The transport of httpx, with a limit on the whole answer."""

    def __init__(self, limit: Limit, *, http2: bool, concurrency: int) -> None:
        context = ssl.create_default_context()
        super().__init__(verify=context, trust_env=False)
        self._pool = httpcore.ConnectionPool(
            ssl_context=context,
            max_connections=concurrency,
            max_keepalive_connections=concurrency,
            keepalive_expiry=30,
            http2=http2,
            network_backend=_Backend(limit),
        )


class _Backend(httpcore.NetworkBackend):
    def __init__(self, limit: Limit) -> None:
        self._inner, self._limit = httpcore.SyncBackend(), limit

    def connect_tcp(self, *args: Any, **given: Any) -> httpcore.NetworkStream:
        return _Stream(self._inner.connect_tcp(*args, **given), self._limit)

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, limit: Limit) -> None:
        self._inner, self._limit = inner, limit
        limit.add(inner.get_extra_info("socket"))

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        left = self._limit.left
        if left <= 0:
            raise httpcore.ReadTimeout("the answer did not end in time")
        return self._inner.read(max_bytes, left if timeout is None else min(timeout, left))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, timeout)

    def close(self) -> None:
        self._inner.close()

    def start_tls(self, *args: Any, **given: Any) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(*args, **given), self._limit)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
