"""The server of `penchant explore`: where it listens, whom it answers, what it refuses."""

import asyncio
import contextlib
import json
import re
import socket
import subprocess
import sys

import pytest

pytest.importorskip("bokeh")

from tornado.httpclient import HTTPRequest
from tornado.websocket import websocket_connect

from explore_server import VIEWS, visiting
from penchant.explore.server import Explorer, check_binding, is_loopback
from penchant.lab.report.math_font import FILE

TOKEN = "a-token-of-24-characters"


def text(answer):
    return answer.body.decode()


def test_the_page_holds_everything_and_names_no_other_machine():
    async def visits(explorer, get):
        page = await get("/?view=regularizer&depth=3")
        script = await get("/static/js/bokeh.min.js")
        return text(page), page.code, script.code, page.headers["Content-Security-Policy"]

    page, code, script, policy = visiting(visits)
    assert (code, script) == (200, 200)
    assert "The regularizer and its limits" in page
    assert not re.findall(r"(?:https?:)?//[a-z]", page)
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert sources
    assert all(source.startswith(("/static/js/", "/?view=", "#", "data:,")) for source in sources)
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy


def test_the_font_of_formulas_is_served_and_may_be_kept():
    async def visits(explorer, get):
        return await get("/math.woff2")

    answer = visiting(visits)
    assert answer.code == 200
    assert answer.body == FILE.read_bytes()
    assert answer.headers["Content-Type"] == "font/woff2"
    assert answer.headers["Cache-Control"] == "max-age=86400"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


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


FOREIGN = [  # what browsers say about requests that another page makes, and that it may not make
    {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "image"},
    {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "cors", "Sec_Fetch_Dest": "empty"},
    {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "iframe"},
    {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"},
]
OURS = [
    {},  # no browser
    {"Sec_Fetch_Site": "none", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"},
    {"Sec_Fetch_Site": "same-origin", "Sec_Fetch_Mode": "no-cors", "Sec_Fetch_Dest": "script"},
    {**FOREIGN[3], "Sec_Fetch_User": "?1"},  # somebody clicked on a link
]


def test_another_page_cannot_make_this_one_compute(monkeypatch):
    from penchant.explore import document

    drawn = []

    class Counted(document.Live):
        def __init__(self, *given):
            drawn.append(given)
            super().__init__(*given)

    monkeypatch.setattr(document, "Live", Counted)

    async def visits(explorer, get):
        refused = [await get("/?depth=3", **headers) for headers in FOREIGN]
        assert [answer.code for answer in refused] == [403] * len(FOREIGN)
        assert "another page asks for this one" in text(refused[0])
        assert drawn == []
        answered = [await get("/?depth=3", **headers) for headers in OURS]
        assert [answer.code for answer in answered] == [200] * len(OURS)
        assert len(drawn) == len(OURS)

    visiting(visits)


VALUES = [1e9, -1e300, {"type": "number", "value": "nan"}, "abc", None, [1, 2], {"a": 1}, True]


def test_a_refused_value_of_a_slider_is_one_line_in_the_log(caplog):
    async def visits(explorer, get):
        home = f"127.0.0.1:{explorer.port}"
        token = re.search(r'"token":\s*"([^"]+)"', text(await get("/")))[1]
        sent = HTTPRequest(f"ws://{home}/ws", headers={"Origin": f"http://{home}"})
        connection = await websocket_connect(sent, subprotocols=["bokeh", token])

        async def send(kind, content):
            for part in ({"msgid": "1", "msgtype": kind}, {}, content):
                await connection.write_message(json.dumps(part))

        async def answer():
            parts = [await asyncio.wait_for(connection.read_message(), 20) for _ in range(3)]
            return json.loads(parts[0])["msgtype"], parts[2]

        assert (await answer())[0] == "ACK"
        await send("PULL-DOC-REQ", {})
        slider = re.search(r'"Slider","id":"(\w+)"', (await answer())[1].replace(" ", ""))[1]
        for value in VALUES:
            change = {"kind": "ModelChanged", "model": {"id": slider}, "attr": "value"}
            await send("PATCH-DOC", {"events": [{**change, "new": value}]})
            await answer()  # our own sentence, or an error of bokeh
        assert (await get("/")).code == 200
        connection.close()
        while await asyncio.wait_for(connection.read_message(), 20) is not None:
            pass

    visiting(visits)
    assert len(caplog.records) == len(VALUES)
    assert all(record.exc_info is None for record in caplog.records)
    assert all("\n" not in record.getMessage() for record in caplog.records)


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
    from penchant.explore.server import MESSAGE

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
        for path in (
            "/",
            "/static/js/bokeh.min.js",
            "/math.woff2",
            "/ws",
            "/nothing",
            "/?token=wrong",
        ):
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
        assert (await get("/", Cookie="penchant_explore=é")).code == 403

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
              "from penchant.explore.start import prepared\nprepared()")  # fmt: skip
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'penchant[page]'" in found.stderr


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
    from penchant.explore import gate, server

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
