"""One request at a time: what came back, or why nothing did that could be used.

Only the named address is spoken to: redirects to another host are refused, proxies of the
environment are not used, and a certificate that does not hold ends the run.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
import time
import weakref
from contextlib import suppress
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin, urlsplit

from limi.errors import BadModel, InvalidInput, missing
from limi.remote.secrets import Headers
from limi.system.shown import one_line

__all__ = ["SILENT", "TOO_LARGE", "Client", "Failed", "Limit", "Malformed", "Request"]

SILENT = "no answer in time"
TOO_LARGE = "too many rows at once (status 413)"

_MOST_BYTES = 64 << 20  # of an answer
_MOST_WORDS = 200  # characters of a server's words that are quoted
_MOST_REDIRECTS = 3
_TO_CONNECT = 10.0  # seconds, at most
_BUSY = (408, 425, 429)
_NOT_TLS = (
    "WRONG_VERSION_NUMBER",
    "HTTP_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
)
_MARKUP = re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class Request:
    """What is sent."""

    url: str
    content: bytes = b""
    content_type: str = "application/json"
    method: str = "POST"
    accept: str = "application/json"


class Failed(Exception):
    """A request that may be tried again, after so many seconds where the server says so.

    It is `late` where the server took it and did not answer in time.
    """

    def __init__(
        self, kind: str, said: str = "", *, after: float | None = None, late: bool = False
    ) -> None:
        super().__init__(kind + said)
        self.kind, self.after, self.late = kind, after, late


class Malformed(Exception):
    """An answer that cannot be read; it may have been spoiled on the way."""


class Limit:
    """When the request of each thread must have ended, and the sockets by which to end it."""

    def __init__(self) -> None:
        self._thread = threading.local()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._is_over = False
        self._lock = threading.Lock()

    def begin(self, seconds: float) -> None:
        """The request of this thread has so many seconds from now on."""
        self._thread.until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds that the request of this thread still has."""
        until: float = self._thread.until
        return 0.0 if self._is_over else until - time.monotonic()

    def add(self, opened: socket.socket) -> None:
        """Another socket, over which a request may travel."""
        with self._lock:
            self._sockets.add(opened)

    def end(self) -> None:
        """End all requests at once, whatever they wait for."""
        self._is_over = True
        with self._lock:
            for opened in self._sockets:
                with suppress(OSError):  # not connected any more
                    # That of the plain socket: TLS would wait for the other side.
                    socket.socket.shutdown(opened, socket.SHUT_RDWR)


class Client:
    """Sends requests to one host; safe to use from several threads."""

    def __init__(self, host: str, headers: Headers, *, concurrency: int) -> None:
        self.host, self._headers, self._concurrency = host, headers, concurrency
        self._limit = Limit()
        self._open()

    def send(self, request: Request, seconds: float) -> bytes:
        """The body of a good answer that came within so many seconds; Failed where another try
        may help, else BadModel."""
        import httpx

        try:
            for _ in range(_MOST_REDIRECTS):
                status, headers, body = self._once(request, seconds)
                if not 300 <= status < 400:
                    return self._judge(request, status, headers, body)
                request = self._redirected(request, status, headers.get("location", ""))
            raise BadModel(f"{self.host} redirects in a loop; give the final address")
        except httpx.TimeoutException as error:
            raise Failed(SILENT, late=isinstance(error, httpx.ReadTimeout)) from None
        except httpx.TransportError as error:
            if "location header" in str(error):  # httpx looks at it although it must not follow
                raise BadModel(
                    f"{self.host} redirects to something that is not an address"
                ) from None
            self._stop_on_tls(error)
            raise Failed(_name(error)) from None
        except httpx.DecodingError:
            raise Malformed("a body that cannot be unpacked") from None
        except httpx.InvalidURL as error:
            raise InvalidInput(f"{request.url!r} is not an address: {error}") from None

    def close(self) -> None:
        """Close the connections; others are opened where they are needed again."""
        self._closing()
        self._open()

    def abort(self) -> None:
        """End the requests that are on their way, whose threads then fail at once."""
        self._limit.end()

    def _open(self) -> None:
        self._http = _make(self._headers, self._concurrency, self._limit)
        # A model that nobody holds any more leaves no connection open.
        self._closing = weakref.finalize(self, self._http.close)

    def _once(self, request: Request, seconds: float) -> tuple[int, Any, bytes]:
        """Status, headers and body, which must all have come within the time."""
        import httpx

        headers = {"Content-Type": request.content_type, "Accept": request.accept}
        if request.method == "GET":
            del headers["Content-Type"]
        parts, size = [], 0
        self._limit.begin(seconds)
        with self._http.stream(
            request.method,
            self._headers.fill(request.url),
            content=request.content or None,
            headers=headers,
            timeout=httpx.Timeout(seconds, connect=min(seconds, _TO_CONNECT)),
        ) as response:
            for part in response.iter_bytes():
                parts.append(part)
                size += len(part)
                if size > _MOST_BYTES:
                    raise BadModel(
                        f"{self.host} answers with more than {_MOST_BYTES >> 20} MB, which cannot "
                        "be a list of decisions; is the address right?"
                    )
            self._drop_surplus(response.extensions.get("network_stream"))
            return response.status_code, response.headers, b"".join(parts)

    def _drop_surplus(self, stream: Any) -> None:
        """Close a connection on which more came than was asked for.

        An answer that somebody repeats would be read as that to the next request. What has not
        come yet when the connection is used again is seen by the pool itself.
        """
        pool = getattr(getattr(self._http, "_transport", None), "_pool", None)
        for connection in getattr(pool, "connections", ()):
            inner = getattr(connection, "_connection", None)
            state: Any = getattr(inner, "_h11_state", None)
            mine = stream is not None and getattr(inner, "_network_stream", None) is stream
            if mine and state is not None and state.trailing_data[0]:
                closed: Any = stream
                closed.close()

    def _judge(self, request: Request, status: int, headers: Any, body: bytes) -> bytes:
        if 200 <= status < 300:
            if "html" in headers.get("content-type", ""):
                raise BadModel(
                    f"{self.host} answers with a web page{self._words(body)} instead of decisions; "
                    "is the path right, and does it need a --header to log in?"
                )
            return body
        if status == 413:
            raise Failed(TOO_LARGE)
        if status in _BUSY or status >= 500:
            raise Failed(f"status {status}", self._words(body), after=_after(headers))
        raise BadModel(self._refusal(request, status, body))

    def _refusal(self, request: Request, status: int, body: bytes) -> str:
        said = self._words(body)
        if status in (401, 403):
            return (
                f"{self.host} refuses access (status {status}{said}); give the right "
                '--header, such as "Authorization: Bearer $TOKEN"'
            )
        if status in (404, 405):
            path = urlsplit(request.url).path or "/"
            return (
                f"{self.host} does not know {request.method} {path} (status {status}{said}); are "
                "the address and the kind of server right?"
            )
        return f"{self.host} refuses the rows (status {status}{said})"

    def _words(self, body: bytes) -> str:
        """What a server says, on one line and without what must not be seen."""
        text = _MARKUP.sub(" ", self._headers.scrub(body[:4000].decode("utf-8", "replace")))
        text = " ".join(one_line(text).split())
        if not text:
            return ""
        return f": {text if len(text) <= _MOST_WORDS else text[:_MOST_WORDS] + ' ...'}"

    def _redirected(self, request: Request, status: int, location: str) -> Request:
        """The same request elsewhere on the same host."""
        shown = self._headers.scrub(one_line(location[:_MOST_WORDS]))
        there = urljoin(request.url, location)
        here, to = urlsplit(request.url), urlsplit(there)
        if not location or to[:2] != here[:2]:
            where = f"{to.scheme}://{to.netloc}" if to.netloc else "nowhere"
            where = self._headers.scrub(one_line(where))
            raise BadModel(
                f"{self.host} redirects to {where}; limi sends rows only to the address you name, "
                "so name the other one if you trust it"
            )
        if status not in (307, 308) and request.method != "GET":
            raise BadModel(
                f"{self.host} redirects (status {status}) to {shown!r}, which limi does not "
                "follow; is it a login page? Give the final address"
            )
        return replace(request, url=there)

    def _stop_on_tls(self, error: BaseException) -> None:
        """BadModel where no further try would end in a safe connection."""
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, ssl.SSLCertVerificationError):
                raise BadModel(
                    f"the certificate of {self.host} is not valid ({cause.verify_message}); use "
                    "the host name it was issued for, or make its authority known to this machine "
                    "(SSL_CERT_FILE)"
                ) from None
            if isinstance(cause, ssl.SSLError) and cause.reason in _NOT_TLS:
                raise BadModel(
                    f"{self.host} does not speak https ({cause.reason}); is it an http:// address?"
                ) from None
            cause = cause.__cause__ or cause.__context__


def _make(headers: Headers, concurrency: int, limit: Limit) -> Any:
    try:
        import httpx

        from limi.remote._streams import LimitedTransport
    except ImportError:
        raise missing("httpx", "remote", "a model behind an address") from None
    try:
        import h2  # noqa: F401 (only to see whether it is there)

        http2 = True
    except ImportError:
        http2 = False
    try:
        sent = httpx.Headers({"User-Agent": "limi", **headers.values})
    except (TypeError, ValueError):
        raise InvalidInput("a --header holds characters that are not allowed in a header") from None
    return httpx.Client(
        headers=sent,
        trust_env=False,
        follow_redirects=False,
        transport=LimitedTransport(limit, http2=http2, concurrency=concurrency),
    )


def _name(error: BaseException) -> str:
    """Why a connection failed, in few words."""
    import httpx

    if isinstance(error, httpx.ConnectError):
        return "no connection"
    return "a connection that broke off"


def _after(headers: Any) -> float | None:
    """Seconds that the server asks to wait for, as a number or as a date."""
    text = headers.get("retry-after")
    if text is None:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (TypeError, ValueError):
        return None
