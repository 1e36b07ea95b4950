"""A bounded number of connections, and checks of every request before bokeh handles it.

A request is refused with a message if it has a foreign Host (a page elsewhere whose name points to
this machine), if another page makes it (an image or a frame with our address would let us compute
for it), or if it has a websocket from another origin, a path other than the page and its scripts,
or an address that does not describe a state.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest, parse_cookie
from tornado.iostream import IOStream
from tornado.routing import Router
from tornado.web import Application, RequestHandler

from penchant.explore.controls import cut
from penchant.explore.page import refusal_page
from penchant.explore.state import LONGEST, State, View, read_state
from penchant.lab.report.math_font import FILE

MOST_CONNECTIONS = 300  # a browser opens some six; more would use up the files of the process
COOKIE = "penchant_explore"
SCRIPT = re.compile(r"/static/js/[A-Za-z0-9._-]{1,80}\.js")
FONT = f"/{FILE.name}"
KEPT = {"Content-Type": "font/woff2", "Cache-Control": "max-age=86400"}  # a page needs it each time
POLICY = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    # bokeh makes functions of texts and writes its document into the page
    "Content-Security-Policy": "default-src 'self'; script-src 'self' 'unsafe-inline' "
    "'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'",
}
FETCH = ("Site", "Mode", "Dest", "User")
Plain = Callable[[State], str]


class Listener(HTTPServer):
    """Closes a connection at once where too many are open, so that the others are served."""

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        if len(self._connections) >= MOST_CONNECTIONS:
            stream.close()
        else:
            super().handle_stream(stream, address)


class Refused(Exception):
    """A request that is answered with a status and a message only."""

    def __init__(self, status: int, sentence: str):
        super().__init__(sentence)
        self.status = status


class PlainAnswer(RequestHandler):
    """A page that needs no bokeh."""

    def initialize(self, status: int, page: str | bytes, headers: Mapping[str, str]) -> None:
        self.status, self.page, self.headers = status, page, headers

    def prepare(self) -> None:
        self.set_status(self.status)
        for name, value in (POLICY | dict(self.headers)).items():
            self.set_header(name, value)
        self.finish(self.page)


def guard_headers(request: HTTPServerRequest) -> None:
    """Add the security policy to an answer; the browser may cache scripts."""
    connection: Any = request.connection
    write = connection.write_headers
    added = {
        key: value for key, value in POLICY.items() if key != "Cache-Control" or request.path == "/"
    }

    def write_headers(start: Any, headers: Any, chunk: bytes | None = None) -> Any:
        for name, value in added.items():
            headers[name] = value
        return write(start, headers, chunk)

    connection.write_headers = write_headers


class Gate(Router):
    """Routes a request to bokeh or to a plain page, or refuses it.

    `hosts` are the allowed values of the Host header; None allows all: a token is required, or
    anybody may visit.
    `plain` holds the views that do not use bokeh.
    """

    def __init__(
        self,
        bokeh: Application,
        views: Mapping[str, View],
        plain: Mapping[str, Plain],
        hosts: frozenset[str] | None,
        token: str | None,
    ):
        self.bokeh, self.views, self.plain = bokeh, views, plain
        self.hosts, self.token = hosts, token

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> HTTPMessageDelegate | None:
        try:
            self._checked(request)
            if self._brings_token(request):
                return self._answer(request, 303, "", self._entry(request))
            if request.path == FONT:
                return self._answer(request, 200, FILE.read_bytes(), KEPT)
            if request.path == "/":
                state = self._state(request)
                if state.view in self.plain:
                    return self._answer(request, 200, self.plain[state.view](state))
        except Refused as refused:
            page = refusal_page(str(refused), () if refused.status == 403 else self.views)
            return self._answer(request, refused.status, page)
        guard_headers(request)
        return self.bokeh.find_handler(request, **kwargs)

    def _answer(
        self,
        request: HTTPServerRequest,
        status: int,
        page: str | bytes,
        headers: Mapping[str, str] | None = None,
    ) -> HTTPMessageDelegate:
        given = {"status": status, "page": page, "headers": headers or {}}
        return self.bokeh.get_handler_delegate(request, PlainAnswer, given)

    def _checked(self, request: HTTPServerRequest) -> None:
        """Raise Refused unless host, token, origin, method and path are allowed."""
        if self.hosts is not None and request.host.lower() not in self.hosts:
            raise Refused(403, f"explore: this page is not served at {cut(request.host)!r}")
        if self.token is not None and not self._has_token(request):
            raise Refused(
                403, "explore: the token is missing or wrong; add ?token=… to the address"
            )
        if not self._wanted_here(request):
            raise Refused(403, "explore: another page asks for this one; open its address yourself")
        if request.method not in ("GET", "HEAD"):
            raise Refused(405, "explore: only GET requests are allowed")
        if (length := len(request.query)) > LONGEST:
            sentence = f"explore: the address is too long ({length} > {LONGEST} characters)"
            raise Refused(400, sentence)
        if request.path == "/ws":
            self._same_origin(request)
        elif request.path not in ("/", FONT) and not SCRIPT.fullmatch(request.path):
            raise Refused(404, f"explore: there is no page {cut(request.path)!r}")

    def _wanted_here(self, request: HTTPServerRequest) -> bool:
        """False if the browser says that another page makes the request, without a click.

        A link that somebody clicks on is a visit; programs that are no browsers say nothing.
        """
        said = {name: request.headers.get(f"Sec-Fetch-{name}", "") for name in FETCH}
        clicked = (said["Mode"], said["Dest"], said["User"]) == ("navigate", "document", "?1")
        return said["Site"] in ("", "none", "same-origin") or clicked

    def _same_origin(self, request: HTTPServerRequest) -> None:
        origin = request.headers.get("Origin", "")
        try:
            origin_host = urlsplit(origin).netloc.lower()
        except ValueError:  # "http://[" is no address
            origin_host = ""
        if not origin_host or origin_host != request.host.lower():
            raise Refused(403, f"explore: the origin {cut(origin)!r} may not connect")

    def _has_token(self, request: HTTPServerRequest) -> bool:
        from_query = [value for key, value in parse_qsl(request.query) if key == "token"]
        from_cookie = parse_cookie(request.headers.get("Cookie", "")).get(COOKIE, "")
        wanted = str(self.token).encode()
        return any(
            hmac.compare_digest(word.encode(), wanted) for word in [*from_query, from_cookie]
        )

    def _brings_token(self, request: HTTPServerRequest) -> bool:
        return self.token is not None and request.path == "/" and "token" in request.arguments

    def _entry(self, request: HTTPServerRequest) -> dict[str, str]:
        """Keep the token in a cookie, and out of the address that is shared."""
        rest = [(key, value) for key, value in parse_qsl(request.query) if key != "token"]
        cookie = f"{COOKIE}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        return {"Location": f"/?{urlencode(rest)}", "Set-Cookie": cookie}

    def _state(self, request: HTTPServerRequest) -> State:
        try:
            return read_state(request.query, self.views)
        except ValueError as reason:
            raise Refused(400, str(reason)) from None
