"""The server of the page: reachable only from this machine, unless a token protects it."""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import secrets
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from penchant.arguments import integer
from penchant.door import Invalid, door_as
from penchant.explore.controls import WHO
from penchant.explore.state import View, read_state
from penchant.store import first_line

if TYPE_CHECKING:
    from bokeh.document import Document

    from penchant.explore.gate import Plain

TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")
UNFINISHED = 20.0  # seconds for which a connection may wait with half a request, or with none
LETTERS = 200  # of a reason in the log
MESSAGE = 1_000_000  # bytes of the longest message of a browser, which only moves controls


class OneLine(logging.Filter):
    """Makes one line of a traceback: a value that a browser may not set is no fault of ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        reason = record.exc_info[1] if record.exc_info else None
        if reason is not None:
            words = f"{type(reason).__name__}: {first_line(reason)[:LETTERS]}"
            record.msg, record.args, record.exc_info = "refused a message: %r", (words,), None
        return True


ONE_LINE = OneLine()
MESSAGES = "bokeh.server.protocol_handler"  # the logger of what browsers send


def require_bokeh() -> None:
    """Raise unless bokeh is installed."""
    try:
        import bokeh.server  # noqa: F401
    except ImportError:
        hint = "it comes with the extra `page`: pip install 'penchant[page]'"
        raise ValueError(f"{WHO}: the page needs bokeh, which is not installed; {hint}") from None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@door_as(WHO)
def check_binding(host: str, port: int, token: str | None, public: bool = False) -> None:
    """Raise unless the page stays on this machine, a token protects it, or it is for everybody."""
    if not 0 <= integer("port", port, least=0) <= 65535:
        raise Invalid(f"port must be at most 65535, got {port}")
    if token is not None and not TOKEN.fullmatch(token):
        rule = "at least 16 letters, digits, - or _"
        raise Invalid(f"a token must have {rule}, such as {secrets.token_urlsafe(18)}")
    if public and token is not None:
        raise Invalid("a public page has no token; leave out --public or the token")
    if token is None and not public and not is_loopback(host):
        raise Invalid(
            f"{host} can be reached from other machines, so a token is needed: set "
            f"PENCHANT_TOKEN, for example to {secrets.token_urlsafe(18)}, or pass --token; a page "
            "that anybody may visit is started with --public"
        )


class Explorer:
    """A server that listens, with the address of its page in `url`."""

    def __init__(
        self,
        views: Mapping[str, View],
        plain: Mapping[str, Plain] | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        public: bool = False,
    ):
        require_bokeh()
        check_binding(host, port, token, public)
        from bokeh.server.server import BaseServer
        from tornado.ioloop import IOLoop

        from penchant.explore.gate import Gate, Listener

        logging.getLogger(MESSAGES).addFilter(ONE_LINE)
        self.socket = bound(host, port)
        self.port = int(self.socket.getsockname()[1])
        shown = f"[{host}]" if ":" in host else host
        names = own_names(shown, self.port) if is_loopback(host) and not public else None
        others = ["*"] if public else [f"*:{self.port}"]  # the gate compares origin and host
        self.bokeh = _application(views, names or others)
        gate = Gate(self.bokeh, views, plain or {}, frozenset(names) if names else None, token)
        http = Listener(
            gate,
            max_header_size=32_768,
            max_body_size=65_536,
            idle_connection_timeout=UNFINISHED,
            body_timeout=UNFINISHED,
        )
        http.add_socket(self.socket)
        self.loop = IOLoop.current()
        self.server = BaseServer(self.loop, self.bokeh, http)
        self.url = f"http://{shown}:{self.port}/"

    def run(self) -> None:
        """Serve until interrupted."""
        self.server.start()
        try:
            self.loop.start()
        finally:
            self.server.stop(wait=False)


def own_names(host: str, port: int) -> list[str]:
    """The hosts by which a page on this machine may be called."""
    names = [f"{name}:{port}" for name in dict.fromkeys((host, "localhost", "127.0.0.1"))]
    return names + ([name.rpartition(":")[0] for name in names] if port == 80 else [])


def bound(host: str, port: int) -> socket.socket:
    """A listening socket at this address and no other."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, os.name != "nt")
            made.setblocking(False)
            made.bind(address)
            made.listen(128)
        except OSError:
            made.close()
            raise
    except OSError as reason:
        cause = reason.strerror or str(reason)
        raise ValueError(
            f"{WHO}: cannot listen on {host} port {port} ({cause}); choose another --port"
        ) from None
    return made


def _application(views: Mapping[str, View], origins: list[str]) -> Any:
    """The bokeh application: every visit makes a document of the state in its address."""
    from bokeh.application import Application
    from bokeh.application.handlers.function import FunctionHandler
    from bokeh.server.tornado import BokehTornado

    def visit(document: Document) -> None:
        from penchant.explore.document import Live

        context: Any = document.session_context
        sent = context.request.arguments
        query = urlencode([(key, value[0].decode()) for key, value in sent.items()])
        Live(document, read_state(query, views), views)

    return BokehTornado(
        {"/": Application(FunctionHandler(visit))},
        extra_websocket_origins=origins,
        use_index=False,
        sign_sessions=True,  # a session begins with our page, not with a made-up name
        secret_key=secrets.token_bytes(32),
        websocket_max_message_size_bytes=MESSAGE,
        keep_alive_milliseconds=20_000,
        include_cookies=[],
        include_headers=[],
        check_unused_sessions_milliseconds=5_000,
        unused_session_lifetime_milliseconds=15_000,
        log_function=lambda handler: None,  # an address may hold the token
    )
