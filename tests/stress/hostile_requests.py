"""Hostile requests to the page: refused with a status, no traceback, and the page goes on."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from pathlib import Path

from damage import Found, chosen

PATHS = (
    "/../../etc/passwd",
    "/static/../../../etc/passwd",
    "/static/js/..%2f..%2fx.js",
    "//evil",
    "/%00",
    "/static/js/%2e%2e/x.js",
    "/autoload.js",
    "/metadata",
    "/ws",
    "/nothing",
    "*",
    "http://evil/x",
    "/?view=nowhere",
    "/?depth=1e999",
    "/?depth=nan",
    "/?depth=",
    "/?view=%1b[2J",
    "/?x=%3Cscript%3E",
    "/?bokeh-session-id=mine",
    "/?view=" + "a" * 5000,
    "/" + "a" * 20_000,
    "/?" + "a=1&" * 3000,
    "/?depth=" + "9" * 4000,
    "/?%ff=%fe",
    "/\x7f",
    "/?view=regularizer&view=x",
    "/?token=%00",
    "x",
)
HOSTS = (
    "evil.example",
    "",
    "127.0.0.1",
    "127.0.0.1:1",
    "[::1",
    "localhost.evil",
    "a" * 5000,
    "\x01",
    "127.0.0.1@evil",
    "é",
    "*",
)
ORIGINS = (
    "http://[",
    "null",
    "",
    "http://evil.example",
    "javascript:0",
    "http://127.0.0.1:99999999",
    "a" * 5000,
    "file:///",
    "\x02",
    "http://127.0.0.1",
)
METHODS = (
    "POST",
    "PUT",
    "DELETE",
    "OPTIONS",
    "TRACE",
    "CONNECT",
    "PATCH",
    "get",
    "X" * 3000,
    "",
    "PROPFIND",
    "\x1b[2J",
)
RAW = (
    b"",
    b"\r\n",
    b"GET",
    b"GET / HTTP/1.1\r\nHost: 127",
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"\x00" * 999,
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost\r\n\r\n",
    b"A" * 100_000,
    b"PRI * HTTP/2.0\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000 + b"\r\n",
    b"GET / HTTP/1.1\r\nX: " + b"a" * 99_999,
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
    b"GET /\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999\r\n\r\nx",
    b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\n\r\n",
    b"\xff\xfe\xfd\r\n\r\n",
)


def texts(home: str) -> list[tuple[str, bytes]]:
    """Whole and half requests, with what names them."""

    def request(method: str = "GET", path: str = "/", host: str = home, more: str = "") -> bytes:
        text = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{more}\r\n"
        return text.encode()

    upgrade = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    found = [(f"path {path[:40]!r}", request(path=path)) for path in PATHS]
    found += [(f"host {host[:40]!r}", request(host=host)) for host in HOSTS]
    found += [(f"method {method[:40]!r}", request(method)) for method in METHODS]
    for origin, path in itertools.product(ORIGINS, ("/ws", "/ws?x=1")):
        sent = request(path=path, more=f"{upgrade}Origin: {origin}\r\n")
        found.append((f"origin {origin[:40]!r} at {path}", sent))
    return found + [(f"raw {raw[:30]!r} ({len(raw)})", raw) for raw in RAW]


class Recorder(logging.Handler):
    """The records that would show a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.found.append(record.getMessage()[:200])


async def answer(port: int, sent: bytes) -> bytes:
    """What comes back within two seconds; nothing where the connection is closed or waits."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(sent)
        writer.write_eof()
        return await asyncio.wait_for(reader.read(100_000), 2)
    except (TimeoutError, ConnectionError):
        return b""
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def hostile_requests(folder: Path, count: int) -> Found:
    """Each at a page of this process; after each of them the page must still answer."""
    from explore_server import visiting

    recorder = Recorder()

    async def visits(explorer, get) -> Found:
        found = []
        for name, sent in chosen(texts(f"127.0.0.1:{explorer.port}"), count):
            recorder.found.clear()
            back = await answer(explorer.port, sent)
            wrong = judged(name, back) or (f"logged {recorder.found[0]}" if recorder.found else "")
            if not wrong and (await get("/nothing")).code != 404:
                wrong = "the page is gone"
            found.append((name, wrong))
        return found

    logging.getLogger().addHandler(recorder)
    try:
        return visiting(visits)
    finally:
        logging.getLogger().removeHandler(recorder)


def judged(name: str, back: bytes) -> str:
    """What is wrong with an answer; none at all is right for what is no request."""
    if b"Traceback" in back or b"\x1b" in back:
        return "a traceback or ESC in the answer"
    status = back.split(b" ")[1:2]
    if status and status[0][:1] not in (b"2", b"3", b"4"):
        return f"status {status[0]!r}"
    if (
        status
        and status[0][:1] == b"2"
        and not name.startswith(("path '/?view=reg", "path '/?tok"))
    ):
        return "answered as if it were a page"
    return ""
