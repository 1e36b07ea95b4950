"""A headless Chromium, driven through its DevTools protocol with what bokeh brings (tornado)."""

import asyncio
import base64
import json
import shutil
import subprocess
import sys
import time
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--remote-debugging-port=0",
)  # fmt: skip
SERVE = """
import sys
from pathlib import Path
from penchant.explore.start import prepared
files = (Path(name) if name else None for name in sys.argv[2:])
found = prepared(*files, port=0, warm=sys.argv[1] == "warm")
print(found.url, flush=True)
found.run()
"""


@contextmanager
def served(study="", verdicts="", data="", watch="", warm=False):
    """The address of a page that another process serves."""
    files = map(str, (study, verdicts, data, watch))
    command = [sys.executable, "-c", SERVE, "warm" if warm else "", *files]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


@asynccontextmanager
async def browser(folder):
    """A page of a fresh Chromium."""
    from tornado.websocket import websocket_connect

    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder}", "about:blank"]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(command, stdout=quiet, stderr=quiet) as process:
        try:
            port, path = await _address(Path(folder) / "DevToolsActivePort", process)
            socket = await websocket_connect(f"ws://127.0.0.1:{port}{path}", max_message_size=2**26)
            page = Page(socket)
            reading = asyncio.ensure_future(page.read())
            await page.attach()
            yield page
            socket.close()
            await asyncio.wait_for(reading, 20)  # until the browser has closed it too
        finally:
            process.terminate()


async def _address(file, process):
    for _ in range(600):
        if file.exists() and len(lines := file.read_text().split()) == 2:
            return lines
        assert process.poll() is None, "chromium ended at once"
        await asyncio.sleep(0.05)
    raise TimeoutError("chromium did not start")


class Page:
    """One tab: what it asked for is in `requests`, what it complained about in `complaints`."""

    def __init__(self, socket):
        self.socket, self.number, self.waiting, self.session = socket, 0, {}, None
        self.requests, self.complaints, self.loaded = [], [], asyncio.Event()

    async def read(self):
        while (text := await self.socket.read_message()) is not None:
            message = json.loads(text)
            if message.get("id") in self.waiting:
                self.waiting.pop(message["id"]).set_result(message)
            elif "method" in message:
                self.received(message["method"], message["params"])

    def received(self, method, event):
        if method == "Network.requestWillBeSent":
            self.requests.append(event["request"]["url"])
        elif method == "Network.webSocketCreated":
            self.requests.append(event["url"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(event["exceptionDetails"])[:500])
        elif method == "Log.entryAdded" and event["entry"]["level"] == "error":
            self.complaints.append(event["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning"):
            self.complaints.append(json.dumps(event["args"])[:500])

    async def send(self, method, **params):
        self.number += 1
        answer = self.waiting[self.number] = asyncio.get_running_loop().create_future()
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        await self.socket.write_message(json.dumps(message))
        found = await asyncio.wait_for(answer, 60)
        assert "error" not in found, found
        return found["result"]

    async def attach(self):
        target = (await self.send("Target.createTarget", url="about:blank"))["targetId"]
        found = await self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = found["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.send(f"{domain}.enable")

    async def open(self, url, width, height=900):
        """Go to an address and wait until the plots are drawn; the seconds that took."""
        await self.resize(width, height)
        start = time.perf_counter()
        await self.send("Page.navigate", url=url)
        await self.until(DRAWN, 60)
        return time.perf_counter() - start

    async def resize(self, width, height=900):
        await self.send("Emulation.setDeviceMetricsOverride", width=width, height=height,
                        deviceScaleFactor=1, mobile=False)  # fmt: skip
        await self.run(PAINTED)

    async def until(self, script, seconds=20):
        """Wait until an expression in the page is true."""
        end = time.perf_counter() + seconds
        while not await self.run(script):
            assert time.perf_counter() < end, f"never came: {script}"
            await asyncio.sleep(0.02)

    async def run(self, script):
        """The value of an expression in the page; a promise is waited for."""
        found = await self.send("Runtime.evaluate", expression=script, returnByValue=True,
                                awaitPromise=True)  # fmt: skip
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def press(self, key):
        for kind in ("rawKeyDown", "keyUp"):
            await self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key,
                            windowsVirtualKeyCode=KEYS[key])  # fmt: skip

    async def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            await self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left",
                            clickCount=1)  # fmt: skip

    async def picture(self, file):
        """The whole page as PNG."""
        found = await self.send("Page.captureScreenshot", captureBeyondViewport=True)
        Path(file).write_bytes(base64.b64decode(found["data"]))


KEYS = {"Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, "Home": 36, "End": 35, "Enter": 13}
PAINTED = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
# the element with the focus, inside of whatever shadows it is in
FOCUS = """(() => { let at = document.activeElement;
  while (at && at.shadowRoot && at.shadowRoot.activeElement) at = at.shadowRoot.activeElement;
  return at; })()"""
# idle is reported when all that was requested is on the canvas
DRAWN = """(() => {
  if (document.readyState !== "complete" || !document.querySelector("main h1")) return false;
  if (!document.querySelector("[data-root-id]")) return true;
  const docs = (window.Bokeh || {}).documents || [];
  return docs.length > 0 && docs[0].is_idle;
})()"""
