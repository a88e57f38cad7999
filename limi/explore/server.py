"""The exploration on HTTP: who may ask, what a request may hold, and what every answer carries."""

from __future__ import annotations

import asyncio
import gc
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from limi.errors import InvalidInput, LimiError, missing
from limi.explore.exploration import Exploration
from limi.explore.guard import Guard
from limi.explore.pages import Page, Pages
from limi.explore.query import MOST_BYTES, Query, read_pairs
from limi.report._pages import read_part
from limi.system.foreign import reason

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

__all__ = ["Served", "bind", "make_app", "serve", "serve_aside"]

_T = TypeVar("_T")

_STATIC = {"report.css": "text/css", "explore.css": "text/css", "explore.js": "text/javascript"}
_WAITING = 256  # connections that wait until they are answered
_RENEWED = 10.0  # seconds between two addresses that are told again
_TURN = 0.001  # seconds that a thread may keep others from Python; a page takes many turns


class _Refused(Exception):
    """A request that is not answered, with a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.sentence = status, sentence


@cache
def _read(name: str) -> str:
    """A style sheet or the script; the report's are its own."""
    from importlib import resources

    if name == "report.css":
        return read_part(name)
    return resources.files("limi.explore").joinpath(f"templates/{name}").read_text("utf-8")


def _import_web() -> None:
    try:
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise missing("starlette", "explore", "limi explore") from None


class _App:
    """Requests to pages."""

    def __init__(self, exploration: Exploration, guard: Guard, tell: Callable[[str], None]) -> None:
        self._x, self._guard, self._tell = exploration, guard, tell
        self._pages = Pages(exploration)
        self._told_at = -_RENEWED

    # -- who may ask ----------------------------------------------------------------------------

    def _session(self, request: Request) -> str:
        """The token of the session's pages; refused where there is no session."""
        token = self._guard.page_token(self._guard.session_of(request.cookies))
        if token is None:
            self._offer_address()
            raise _Refused(
                403,
                f"This page opens with the address that limi explore printed. {self._say_how()}",
            )
        return token

    def _say_how(self) -> str:
        """How to come by an address that works."""
        if not self._guard.once:
            return "It ends with the token that limi explore was given."
        place = "`.address` in the notebook is" if self._guard.framed else "the terminal now shows"
        return f"That address works once; if it was used in another browser, {place} a new one."

    def _offer_address(self) -> None:
        """Show a new address where limi runs, if the old one was used; not more than now and
        then, because anybody may knock."""
        if not self._guard.once or self._guard.token:
            return
        now = time.monotonic()
        if now - self._told_at >= _RENEWED:
            self._told_at = now
            self._tell(
                "Somebody asked for the page without a session. If it was you, open: "
                f"{self._guard.renew()}"
            )

    def _check_post(self, request: Request, token: str) -> None:
        """Refuse what a page of another site may have sent."""
        origin = request.headers.get("origin")
        own = f"http://{request.headers.get('host', '')}"
        site = request.headers.get("sec-fetch-site")
        if (origin not in (None, own)) or site not in (None, "same-origin", "none"):
            raise _Refused(403, "This question came from another page, so it was not asked.")
        session = self._guard.session_of(request.cookies)
        if not self._guard.admits_post(session, token):
            raise _Refused(403, "This form belongs to another session; reload the page.")

    async def _form(self, request: Request) -> Query:
        """The form of a POST, no longer than a form is."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip()
        if kind not in ("application/x-www-form-urlencoded", ""):
            raise _Refused(415, "Send forms as application/x-www-form-urlencoded.")
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MOST_BYTES:
                raise _Refused(413, f"A form may hold at most {MOST_BYTES:,} bytes.")
        form = Query(read_pairs(body.decode("utf-8", "replace")))
        self._check_post(request, form.get("token"))
        return form

    # -- answers --------------------------------------------------------------------------------

    def _respond(self, page: Page, token: str = "") -> Response:
        """A page; who has no session is not told what is asked here.

        What the first question needs is learned once the first page is out.
        """
        from starlette.background import BackgroundTask
        from starlette.responses import HTMLResponse

        if not token:
            return HTMLResponse(page.body, page.status)
        headers = {"X-Limi-Asked": self._asked()}
        return HTMLResponse(page.body, page.status, headers, background=BackgroundTask(self._warm))

    async def _warm(self) -> None:
        self._x.warm()

    def _asked(self) -> str:
        meter = self._x.meter
        return f"{meter.asked:,}" + ("" if meter.most is None else f" of {meter.most:,}")

    async def _in_turn(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._x.jobs.pages, work)

    def endpoint(
        self, answer: Callable[..., Page], *, post: bool = False, few: bool = False
    ) -> Callable[[Request], Awaitable[Response]]:
        """An answer as Starlette calls it: in a thread, with a sentence for whatever goes wrong.

        With `few`, no more are made at once than there are cores.
        """
        from starlette.concurrency import run_in_threadpool

        async def respond(request: Request) -> Response:
            whole = request.headers.get("x-limi") != "part"
            token = ""
            try:
                token = self._session(request)
                given = await self._form(request) if post else Query(read_pairs(request.url.query))
                path = dict(request.path_params)
                if few:
                    page = await self._in_turn(lambda: answer(path, given, token, whole))
                else:
                    page = await run_in_threadpool(answer, path, given, token, whole)
            except _Refused as refused:
                page = self._pages.message(
                    refused.sentence, token, whole=whole, status=refused.status
                )
            except LimiError as error:
                page = self._pages.message(str(error), token, whole=whole, status=400)
            except Exception as error:  # a page ends in a sentence, whatever a library says
                page = self._pages.message(
                    f"This could not be shown: {reason(error)}.", token, whole=whole, status=500
                )
            return self._respond(page, token)

        return respond

    async def root(self, request: Request) -> Response:
        """The address that opens the page, or the first page."""
        from starlette.responses import HTMLResponse, RedirectResponse

        given = request.query_params.get("token")
        if given is not None:
            session = self._guard.open(given)
            if session is None:
                self._offer_address()
                page = self._pages.message(
                    "This address has been used, or is not the one that limi explore printed. "
                    f"{self._say_how()}",
                    status=403,
                )
                return self._respond(page)
            # A page of ours goes on from here: a redirect would count as the site's that led
            # here, and the cookie would stay behind.
            page = self._pages.render("opening.html", "", whole=True, here="", title="limi")
            opened = HTMLResponse(page.body)
            for cookie in self._guard.cookies(session):
                opened.headers.append("Set-Cookie", cookie)
            return opened
        try:
            self._session(request)
        except _Refused as refused:
            return self._respond(self._pages.message(refused.sentence, status=refused.status))
        first = "/people" if self._x.found is None else "/findings"
        return RedirectResponse(first, status_code=303)

    async def static(self, request: Request) -> Response:
        """A style sheet or the script; they hold nothing that is anybody's."""
        from starlette.responses import PlainTextResponse

        name = request.path_params["name"]
        if name not in _STATIC:
            return PlainTextResponse("There is no such file.", 404)
        return PlainTextResponse(_read(name), media_type=_STATIC[name])

    async def no_picture(self, request: Request) -> Response:
        """Browsers ask for one by themselves."""
        from starlette.responses import Response

        return Response(status_code=204)

    async def download(self, request: Request) -> Response:
        """Findings that were selected, as a file."""
        from starlette.responses import Response

        from limi.explore.export import EXPORTS, export

        try:
            self._session(request)
            kind = request.path_params["kind"]
            if kind not in EXPORTS:
                raise InvalidInput("findings can be downloaded as csv, parquet or pytest")
            query = Query(read_pairs(request.url.query))
            name, media, content = await self._in_turn(lambda: export(self._x, kind, query))
        except _Refused as refused:
            return self._respond(self._pages.message(refused.sentence, status=refused.status))
        except LimiError as error:
            return self._respond(self._pages.message(str(error), status=400))
        except Exception as error:
            sentence = f"This could not be written: {reason(error)}."
            return self._respond(self._pages.message(sentence, status=500))
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        return Response(content, media_type=media, headers=headers)

    # -- routes ---------------------------------------------------------------------------------

    def routes(self) -> list[Any]:
        """Every address of the page."""
        from starlette.routing import Route

        pages = self._pages
        get: dict[str, Callable[..., Page]] = {
            "/findings": lambda path, query, token, whole: pages.findings(query, token),
            "/people": lambda path, query, token, whole: pages.people(query, token),
            "/person": lambda path, query, token, whole: pages.person(
                self._x.first_person(), Query(), token
            ),
            "/person/{ref}": lambda path, query, token, whole: pages.person(
                path["ref"], query, token
            ),
            "/where": lambda path, query, token, whole: pages.where(query, token),
            "/map": lambda path, query, token, whole: pages.map(query, token),
            "/record": lambda path, query, token, whole: pages.record(token),
            "/job/{number:int}": lambda path, query, token, whole: pages.job(
                path["number"], token, whole=whole
            ),
        }
        post: dict[str, Callable[..., Page]] = {
            "/person/{ref}/{action}": lambda path, form, token, whole: pages.act(
                path["ref"], path["action"], form, token, whole=whole
            ),
            "/job/{number:int}/cancel": lambda path, form, token, whole: pages.cancel(
                path["number"], token, whole=whole
            ),
            "/where/look": lambda path, form, token, whole: pages.look(form, token, whole=whole),
            "/record/forget": lambda path, form, token, whole: pages.forget(form, token),
        }
        return [
            Route("/", self.root),
            Route("/static/{name}", self.static),
            Route("/favicon.ico", self.no_picture),
            Route("/export/{kind}", self.download),
            *(
                Route(path, self.endpoint(answer, few=path in ("/findings", "/people", "/where")))
                for path, answer in get.items()
            ),
            *(
                Route(path, self.endpoint(answer, post=True), methods=["POST"])
                for path, answer in post.items()
            ),
        ]

    def refuse(self, status: int, sentence: str) -> Response:
        """A page that says no."""
        return self._respond(self._pages.message(sentence, status=status))


class _Gate:
    """Before all else: the right host, a bounded address, and headers on every answer."""

    def __init__(self, inner: Any, guard: Guard) -> None:
        self._inner, self._guard = inner, guard

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from starlette.responses import PlainTextResponse

        if scope["type"] != "http":
            return
        headers = {name.lower(): value for name, value in scope["headers"]}
        hosts = [value for name, value in scope["headers"] if name.lower() == b"host"]

        async def sending(message: Any) -> None:
            if message["type"] == "http.response.start":
                more = [(k.lower().encode(), v.encode()) for k, v in self._guard.headers.items()]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        host = headers.get(b"host", b"").decode("latin-1")
        if len(hosts) != 1 or not self._guard.admits_host(host):
            refused = PlainTextResponse("This server does not answer to that name.", 421)
            await refused(scope, receive, sending)
        elif len(scope.get("query_string", b"")) > MOST_BYTES // 4 or len(scope["path"]) > 200:
            await PlainTextResponse("The address is too long.", 414)(scope, receive, sending)
        else:
            await self._inner(scope, receive, sending)


def make_app(
    exploration: Exploration, guard: Guard, tell: Callable[[str], None] = lambda words: None
) -> Any:
    """The page as an ASGI application; `tell` shows a line where limi runs."""
    _import_web()
    from starlette.applications import Starlette

    app = _App(exploration, guard, tell)

    async def lost(request: Request, error: Exception) -> Response:
        return app.refuse(404, "There is no such page; go back to the findings.")

    async def wrong(request: Request, error: Exception) -> Response:
        return app.refuse(405, "This address does not accept that kind of request.")

    inner: Starlette = Starlette(routes=app.routes(), exception_handlers={404: lost, 405: wrong})
    return _Gate(inner, guard)


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens; InvalidInput where it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(_WAITING)  # so that the address works as soon as it is told
    except (OSError, OverflowError) as error:
        made.close()
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(
            f"limi cannot listen on {host}, port {port}: {why}; name another --port, or leave it "
            "out for a free one"
        ) from None
    made.set_inheritable(True)
    return made


def serve_aside(exploration: Exploration, port: int = 0) -> Served:
    """Serve from a thread, to a notebook of this machine."""
    _import_web()
    sock = bind("127.0.0.1", port)
    return Served(exploration, Guard.local(sock.getsockname()[1], framed=True), sock)


class Served:
    """A page that is being served from a thread, as a notebook shows it."""

    def __init__(self, exploration: Exploration, guard: Guard, sock: socket.socket) -> None:
        self.exploration, self.guard = exploration, guard
        self._server = _make_server(exploration, guard, lambda words: None)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [sock]}, daemon=True, name="limi-explore"
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """What opens the page, once; another one after that."""
        return self.guard.renew()

    def stop(self) -> None:
        """End it."""
        self._server.should_exit = True
        self.exploration.jobs.close()
        self._thread.join(5)

    def __repr__(self) -> str:
        return f"<limi.explore at {self.address}>"

    def _repr_html_(self) -> str:
        from markupsafe import escape

        # A notebook stands at localhost as a rule, and only the same name gets the cookie. A frame
        # that an editor does not show has used up its address, so the link has its own.
        framed, linked = (
            escape(address.replace("127.0.0.1", "localhost"))
            for address in (self.address, self.guard.add_address())
        )
        return (
            f'<p>limi explore: <a href="{linked}" target="_blank" rel="noopener noreferrer">open '
            "it in its own tab</a>, also if the frame below stays empty. The link works once; "
            f"<code>.address</code> is a new one.<br><small>{linked}</small>"
            f'</p><iframe src="{framed}" width="100%" height="760" title="limi explore"></iframe>'
        )


def _make_server(exploration: Exploration, guard: Guard, tell: Callable[[str], None]) -> Any:
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            make_app(exploration, guard, tell),
            log_level="critical",
            access_log=False,
            lifespan="off",
            server_header=False,
            h11_max_incomplete_event_size=MOST_BYTES,
            timeout_graceful_shutdown=2,
        )
    )


def serve(
    exploration: Exploration,
    guard: Guard,
    sock: socket.socket,
    tell: Callable[[str], None] = lambda words: None,
) -> None:
    """Serve until somebody stops it."""
    _import_web()
    server = _make_server(exploration, guard, tell)
    # A page that is filtered should not wait for what is learned beside it, nor for Python to look
    # for cycles among all that was made before the first request.
    sys.setswitchinterval(_TURN)
    gc.freeze()
    try:
        server.run(sockets=[sock])
    except KeyboardInterrupt:
        pass
    finally:
        exploration.jobs.close()
        sock.close()
