"""Who may talk to the page: one browser that got the address, and nobody by way of another page.

The address holds a token that opens the page once; from then on a cookie does, which scripts cannot
read and other sites cannot send. The Host header must name this server, so that a name which is
turned to this machine after the fact opens nothing. Whatever changes something is a POST that
carries a second token from the page itself.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from limi.errors import InvalidInput

__all__ = ["FEWEST_LETTERS", "Guard"]

FEWEST_LETTERS = 16
"""Of a token that somebody chooses."""

_LOCAL = ("127.0.0.1", "localhost", "[::1]")
_MOST_SESSIONS = 64
_MOST_SPARE = 16
_NOTEBOOKS = "http://localhost:* http://127.0.0.1:* vscode-webview: vscode-file:"


@dataclass(eq=False)
class Guard:
    """The tokens and sessions of one server."""

    host: str
    port: int
    token: str
    once: bool = True  # does the token open the page only once?
    framed: bool = False  # may a notebook on this machine show the page in a frame?
    _sessions: dict[str, str] = field(default_factory=dict)
    _spare: list[str] = field(default_factory=list)  # more tokens that open the page once each
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def local(port: int, *, framed: bool = False) -> Guard:
        """For this machine alone, with a token of its own."""
        return Guard("127.0.0.1", port, secrets.token_urlsafe(24), framed=framed)

    @staticmethod
    def at(host: str, port: int, token: str | None) -> Guard:
        """For a network; InvalidInput without a token that nobody guesses."""
        if token is None:
            raise InvalidInput(
                f"--host {host} lets others reach the page, so --token is needed: a secret of at "
                f"least {FEWEST_LETTERS} characters that opens it"
            )
        if len(token) < FEWEST_LETTERS or not token.isascii() or not token.isprintable():
            raise InvalidInput(
                f"--token must have at least {FEWEST_LETTERS} printable ASCII characters; for "
                f"example {secrets.token_urlsafe(16)}"
            )
        return Guard(host, port, token, once=False)

    @property
    def cookie(self) -> str:
        """The name of the cookie; browsers share cookies between the ports of a machine."""
        return f"limi-explore-{self.port}"

    def cookies(self, session: str) -> list[str]:
        """What a browser is to keep of a session: for requests of this page's own site alone.

        A notebook at 127.0.0.1 that shows localhost in a frame is another site. It gets a second
        cookie, which the browser keeps for pages in that notebook and sends from nowhere else; who
        asks is still told by the Origin and by the token of the page.
        """
        kept = f"{self.cookie}={session}; HttpOnly; Path=/"
        made = [f"{kept}; SameSite=strict"]
        if self.framed:
            made.append(f"framed-{kept}; Secure; SameSite=none; Partitioned")
        return made

    def session_of(self, cookies: Mapping[str, str]) -> str | None:
        """The session that a request brings; None where it brings none that is open."""
        brought = (cookies.get(name) for name in (self.cookie, f"framed-{self.cookie}"))
        return next((one for one in brought if self.page_token(one) is not None), None)

    @property
    def address(self) -> str:
        """What opens the page."""
        return self._address_of(self.token)

    def _address_of(self, token: str) -> str:
        shown = "127.0.0.1" if self.host in ("0.0.0.0", "::") else self.host
        shown = f"[{shown}]" if ":" in shown else shown
        from urllib.parse import quote

        return f"http://{shown}:{self.port}/?token={quote(token, safe='')}"

    def admits_host(self, header: str | None) -> bool:
        """Does the Host header name this server?"""
        if header is None:
            return False
        header = header.strip().lower()
        if self.port == 80 and not re.search(r":\d*$", header):  # browsers leave this one out
            header += ":80"
        name, _, port = header.rpartition(":")
        if not name or port != str(self.port):
            return False
        if name in _LOCAL:
            return True
        if self.host in ("127.0.0.1", "localhost", "::1"):
            return False
        if name in (self.host.lower(), f"[{self.host.lower()}]"):
            return True
        # Whoever serves all addresses is reached by numbers; names could be somebody else's.
        return self.host in ("0.0.0.0", "::") and _is_number(name)

    def open(self, token: str) -> str | None:
        """A new session for whoever has the token; None where it is not the one."""
        with self._lock:
            spare = next((one for one in self._spare if _equal(token, one)), None)
            if spare is not None:
                self._spare.remove(spare)
            elif not self.token or not _equal(token, self.token):
                return None
            elif self.once:
                self.token = ""
            session = secrets.token_urlsafe(32)
            self._sessions[session] = secrets.token_urlsafe(32)
            while len(self._sessions) > _MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return session

    def renew(self) -> str:
        """The address with a token that has not been used."""
        with self._lock:
            if not self.token:
                self.token = secrets.token_urlsafe(24)
        return self.address

    def add_address(self) -> str:
        """One more address that opens the page once, whatever becomes of the others."""
        with self._lock:
            self._spare.append(secrets.token_urlsafe(24))
            del self._spare[:-_MOST_SPARE]
            return self._address_of(self._spare[-1])

    def page_token(self, session: str | None) -> str | None:
        """The token that pages of a session carry; None where there is no such session."""
        if not session:
            return None
        with self._lock:
            for known, token in self._sessions.items():
                if _equal(known, session):
                    return token
        return None

    def admits_post(self, session: str | None, token: str) -> bool:
        """Does a form carry the token of its session's pages?"""
        known = self.page_token(session)
        return known is not None and _equal(token, known)

    @property
    def headers(self) -> dict[str, str]:
        """What every answer carries."""
        ancestors = "'none'"
        if self.framed:
            # Pages of the web are of neither of the last two: they are windows of VS Code.
            ancestors = _NOTEBOOKS
        return {
            "Content-Security-Policy": (
                "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                "img-src 'self'; form-action 'self'; base-uri 'none'; "
                f"frame-ancestors {ancestors}"
            ),
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            "Cross-Origin-Resource-Policy": "same-origin",
        }


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
