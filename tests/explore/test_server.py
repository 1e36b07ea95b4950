"""The server of `tacit explore`: where it listens, whom it answers, what it refuses."""

import asyncio
import contextlib
import re
import socket
import subprocess
import sys

import pytest

pytest.importorskip("bokeh")

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from explore_server import VIEWS, visiting
from tacit.explore.server import Explorer, check_binding, is_loopback

TOKEN = "a-token-of-24-characters"


def text(answer):
    return answer.body.decode()


def test_the_page_holds_everything_and_names_no_other_machine():
    async def visits(explorer, get):
        page = await get("/?view=regularizer&depth=3")
        script = await get("/static/js/bokeh.min.js")
        return text(page), page.code, script.code

    page, code, script = visiting(visits)
    assert (code, script) == (200, 200)
    assert "The regularizer and its limits" in page
    assert not re.findall(r"(?:https?:)?//[a-z]", page)
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert sources
    assert all(source.startswith(("/static/js/", "/?view=", "#", "data:,")) for source in sources)
    assert "default-src 'self'" in page


REFUSED = {
    "/nothing": 404,
    "/static/../../../etc/passwd": 404,
    "/static/js/%2e%2e%2fsecret.js": 404,
    "/autoload.js": 404,
    "/metadata": 404,
    "/?view=nowhere": 400,
    "/?depth=1e9": 400,
    "/?x=<script>alert(1)</script>": 400,
    "/?bokeh-session-id=mine": 400,
    "/?view=" + "a" * 5000: 400,
}


def test_what_is_no_page_is_refused_with_a_sentence():
    async def visits(explorer, get):
        return {path: await get(path.replace("<", "%3C").replace(">", "%3E")) for path in REFUSED}

    for path, answer in visiting(visits).items():
        assert answer.code == REFUSED[path], path
        assert 'class="refused"' in text(answer)
        assert "<script" not in text(answer)


def test_only_reading_is_answered_and_only_under_its_own_name():
    async def visits(explorer, get):
        assert (await get("/", method="POST")).code == 405
        assert (await get("/", Host="evil.example")).code == 403
        assert (await get("/", Host=f"evil.example:{explorer.port}")).code == 403
        assert (await get("/", Host=f"localhost:{explorer.port}")).code == 200

    visiting(visits)


def test_a_websocket_from_another_origin_is_refused():
    async def visits(explorer, get):
        home = f"http://127.0.0.1:{explorer.port}"
        origins = ("http://evil.example", "null", "", f"http://evil.example:{explorer.port}", home)
        return [(await get("/ws", Origin=origin)).code for origin in origins]

    *others, home = visiting(visits)
    assert others == [403] * 4
    assert home == 400  # it gets as far as the websocket, which misses the rest of a handshake


def test_a_made_up_session_is_refused():
    from bokeh.util.token import generate_jwt_token

    async def visits(explorer, get):
        home = f"127.0.0.1:{explorer.port}"
        forged = generate_jwt_token("a" * 44, signed=False, secret_key=None)
        sent = HTTPRequest(f"ws://{home}/ws", headers={"Origin": f"http://{home}"})
        connection = await websocket_connect(sent, subprotocols=["bokeh", forged])
        message = await asyncio.wait_for(connection.read_message(), 5)
        connection.close()
        return message

    assert visiting(visits) is None  # closed without a word of the protocol


def test_a_message_that_is_too_long_ends_the_connection():
    from tacit.explore.server import MESSAGE

    async def visits(explorer, get):
        home = f"127.0.0.1:{explorer.port}"
        token = re.search(r'"token":\s*"([^"]+)"', text(await get("/")))[1]
        sent = HTTPRequest(f"ws://{home}/ws", headers={"Origin": f"http://{home}"})
        short, long = [await websocket_connect(sent, subprotocols=["bokeh", token]) for _ in "ab"]
        await short.write_message("x" * 10)
        await long.write_message("x" * (MESSAGE + 1))
        while await asyncio.wait_for(long.read_message(), 20) is not None:
            pass  # the greeting
        found = short.close_code, long.close_code
        long.close()
        short.close()
        while await asyncio.wait_for(short.read_message(), 20) is not None:
            pass  # the loop may not end before the server has answered, or its socket stays open
        return found

    assert visiting(visits) == (None, 1009)  # the code for "too big"


def test_with_a_token_every_request_needs_it():
    async def visits(explorer, get):
        for path in ("/", "/static/js/bokeh.min.js", "/ws", "/nothing", "/?token=wrong"):
            answer = await get(path)
            assert answer.code == 403, path
            assert TOKEN not in text(answer)
        entry = await get(f"/?token={TOKEN}&view=regularizer&depth=4")
        assert (entry.code, entry.headers["Location"]) == (303, "/?view=regularizer&depth=4")
        cookie = entry.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        pair = cookie.split(";")[0]
        assert (await get("/", Cookie=pair)).code == 200
        assert (await get("/static/js/bokeh.min.js", Cookie=pair)).code == 200
        assert (await get("/", Cookie=pair.replace("token", "taken"))).code == 403
        assert (await get("/", Cookie="tacit_explore=é")).code == 403

    visiting(visits, token=TOKEN)


def test_beyond_loopback_only_with_a_token():
    for host in ("0.0.0.0", "::", "192.168.1.5", "example.org"):
        with pytest.raises(ValueError, match="a token is needed"):
            check_binding(host, 5006, None)
        check_binding(host, 5006, TOKEN)
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        assert is_loopback(host)
        check_binding(host, 5006, None)
    with pytest.raises(ValueError, match="at least 16"):
        check_binding("0.0.0.0", 5006, "short")
    with pytest.raises(ValueError, match="at most 65535"):
        check_binding("127.0.0.1", 70000, None)


def test_it_listens_on_loopback_only():
    async def visits(explorer, get):
        return explorer.socket.getsockname()[0]

    assert visiting(visits) == "127.0.0.1"
    assert visiting(visits, host="localhost") in ("127.0.0.1", "::1")


def test_a_taken_port_is_an_error():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ValueError, match="choose another --port"):
            Explorer(VIEWS, port=taken.getsockname()[1])


def test_without_bokeh_the_extra_is_named():
    script = ("import sys; sys.modules['bokeh'] = None\n"
              "from tacit.explore.start import prepared\nprepared()")  # fmt: skip
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'tacit[page]'" in found.stderr


def test_a_live_page_carries_the_policy_and_no_odd_origin_passes():
    async def visits(explorer, get):
        page, script = await get("/?view=regularizer"), await get("/static/js/bokeh.min.js")
        odd = await get("/ws", Origin="http://[", Upgrade="websocket", Connection="Upgrade")
        return page, script, odd

    page, script, odd = visiting(visits)
    for name, value in {"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY",
                        "Referrer-Policy": "no-referrer"}.items():  # fmt: skip
        assert page.headers[name] == script.headers[name] == value
    assert page.headers["Cache-Control"] == "no-store"
    assert script.headers.get("Cache-Control") != "no-store"
    assert odd.code == 403
    assert "may not connect" in text(odd)


def test_half_open_connections_do_not_stop_the_page(monkeypatch, caplog):
    from tacit.explore import gate, server

    monkeypatch.setattr(gate, "MOST_CONNECTIONS", 20)
    monkeypatch.setattr(server, "UNFINISHED", 0.5)

    async def visits(explorer, get):
        opened = [await asyncio.open_connection("127.0.0.1", explorer.port) for _ in range(40)]
        for _, writer in opened:
            writer.write(b"GET / HTTP/1.1\r\nHost: 127")
        await asyncio.sleep(0.1)
        most = len(explorer.server._http._connections)
        await asyncio.sleep(1.0)
        page = await get("/?view=regularizer")
        for _, writer in opened:
            writer.close()
            with contextlib.suppress(OSError):  # the server was the first to close some
                await writer.wait_closed()
        return most, page.code

    assert visiting(visits) == (20, 200)
    assert not [record for record in caplog.records if record.exc_info]


def test_the_token_is_in_no_log(caplog):
    caplog.set_level("DEBUG")

    async def visits(explorer, get):
        for address in (f"/?token={TOKEN}", f"/nowhere?token={TOKEN}", f"/?token={TOKEN}&view=x"):
            await get(address)

    visiting(visits, token=TOKEN)
    assert TOKEN not in caplog.text
