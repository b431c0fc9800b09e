"""A page in headless Chromium, driven through its DevTools pipe. Standard library only."""

import base64
import json
import os
import pathlib
import select
import shutil
import struct
import subprocess
import tempfile
import time
import zlib

START = 60  # seconds until the browser answers, on a busy machine
ANSWER = 60


class BrowserError(Exception):
    pass


class Browser:
    """One Chromium with one page. What the page complains about and asks for is kept: `complaints`, `requests`."""

    def __init__(self, width=1440, height=900):
        program = shutil.which("chromium")
        if program is None:
            raise BrowserError("no chromium on PATH; tools/setup.sh installs it")
        self.folder = tempfile.mkdtemp(prefix="pipec-browser-")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def place_pipes():  # the browser reads from 3 and writes to 4
            os.dup2(from_browser, 100)
            os.dup2(to_browser, 3)
            os.dup2(100, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--remote-debugging-pipe", f"--user-data-dir={self.folder}",
             f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=(3, 4, to_browser, from_browser),
            preexec_fn=place_pipes, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.last, self.session = b"", 0, None
        self.complaints, self.requests, self.loaded = [], [], False
        pages = self.call("Target.getTargets", limit=START)["targetInfos"]
        target = next(page["targetId"] for page in pages if page["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close", limit=10)
            self.process.wait(10)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, limit=ANSWER, **params):
        """One DevTools command; its result."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        return self._pump(lambda reply: reply.get("id") == self.last, limit, method)

    def open(self, path):
        """Loads a file and waits until it is drawn."""
        self.loaded, self.complaints, self.requests = False, [], []
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        if not self.loaded:
            self._pump(lambda reply: reply.get("method") == "Page.loadEventFired", ANSWER, "loading")
        self.frame()

    def frame(self):
        """Waits until what was changed is drawn."""
        self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def js(self, expression):
        """The value of an expression in the page, promises awaited."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def key(self, key, shift=False):
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key if len(key) > 1 else "",
                      windowsVirtualKeyCode={"Tab": 9, "Escape": 27, "Enter": 13}.get(key, 0), modifiers=8 if shift else 0, **text)
        self.frame()

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
        self.frame()

    def media(self, kind="", **features):
        """As CSS sees it: media(prefers_color_scheme="dark"), media("print")."""
        self.call("Emulation.setEmulatedMedia", media=kind,
                  features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()])
        self.frame()

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.frame()

    def screenshot(self, path, full=False):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=full)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def pixel(self, x, y):
        """(r, g, b) of what is painted there."""
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png",
                                          clip={"x": x, "y": y, "width": 1, "height": 1, "scale": 1})["data"])
        parts, at = b"", 8
        while at < len(data):  # a PNG's chunks: length, kind, contents, checksum
            (length,), kind = struct.unpack_from(">I", data, at), data[at + 4:at + 8]
            parts += data[at + 8:at + 8 + length] if kind == b"IDAT" else b""
            at += 12 + length
        return tuple(zlib.decompress(parts)[1:4])  # one row of one pixel: a filter, which has nothing to filter, and its colours

    def _pump(self, wanted, limit, what):
        end = time.monotonic() + limit
        while True:
            while b"\0" in self.buffer:
                raw, self.buffer = self.buffer.split(b"\0", 1)
                message = json.loads(raw)
                self._watch(message)
                if wanted(message):
                    if "error" in message:
                        raise BrowserError(f"{what}: {message['error']}")
                    return message.get("result", {})
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.read_end], [], [], left)[0]:
                raise BrowserError(f"chromium did not answer {what} within {limit} s")
            chunk = os.read(self.read_end, 1 << 16)
            if not chunk:
                raise BrowserError(f"chromium ended during {what}")
            self.buffer += chunk

    def _watch(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(params["args"]))
        elif method == "Log.entryAdded":
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
