"""Drives a headless Chromium over two pipes with the DevTools protocol. Needs Debian's package chromium and no port.

What the page writes to the console, what it throws, and each request of it are kept in `complaints` and `requests`.
"""
import base64
import fcntl
import json
import os
import select
import subprocess
import tempfile
import time

LIMIT = 30  # seconds that one command or one condition may take, before the test fails
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36, "ArrowUp": 38,
        "ArrowDown": 40}


class Failed(Exception):
    """The browser refused a command, ended, or a condition did not become true in time."""


class Browser:
    def __init__(self, program="chromium", more=()):
        """more: further arguments of the program."""
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands_out, self.commands = pipe()
        self.answers, answers_in = pipe()

        def at_3_and_4():
            os.dup2(commands_out, 3)
            os.dup2(answers_in, 4)

        arguments = [program, "--headless=new", "--remote-debugging-pipe", f"--user-data-dir={self.profile.name}",
                     "--no-first-run", "--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions",
                     "--disable-background-networking", "--disable-component-update", "--disable-sync",
                     "--hide-scrollbars", "--lang=en", *more]
        if os.geteuid() == 0:
            arguments.append("--no-sandbox")  # Chromium refuses to run as root with its sandbox
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*arguments, "about:blank"], pass_fds=(3, 4), preexec_fn=at_3_and_4,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log)
        os.close(commands_out)
        os.close(answers_in)
        self.number, self.read, self.loaded, self.session = 0, b"", False, None
        self.complaints, self.requests, self.runs_scripts = [], [], True
        target = next(one for one in self.call("Target.getTargets")["targetInfos"] if one["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.call("Emulation.setFocusEmulationEnabled", enabled=True)  # the page behaves as in the window in front

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.process.wait(LIMIT)
        except (Failed, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        self.log.close()
        self.profile.cleanup()

    def call(self, method, **parameters):
        """Sends a command and returns its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        until = time.monotonic() + LIMIT
        while True:
            answer = self.next_message(until, method)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise Failed(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def next_message(self, until, what):
        while b"\0" not in self.read:
            ready, _, _ = select.select([self.answers], [], [], max(0.0, until - time.monotonic()))
            data = os.read(self.answers, 1 << 20) if ready else None
            if not data:
                self.log.seek(0)
                said = self.log.read()[-2000:].decode(errors="replace")
                raise Failed(f"{what}: {'the browser ended' if ready else 'no answer in time'}; it said:\n{said}")
            self.read += data
        line, _, self.read = self.read.partition(b"\0")
        message = json.loads(line)
        self.note(message)
        return message

    def note(self, message):
        method, told = message.get("method"), message.get("params", {})
        if method == "Runtime.consoleAPICalled" or method == "Log.entryAdded":
            entry = told.get("entry", told)
            self.complaints.append(entry.get("text") or json.dumps(entry.get("args")))
        elif method == "Runtime.exceptionThrown":
            details = told["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def open(self, url):
        """Opens a page and returns when it has been loaded. Forgets what earlier pages said and asked for."""
        self.load("about:blank")  # so that an address with another fragment is loaded, too
        self.complaints, self.requests = [], []
        self.load(url)
        self.settle()

    def load(self, url):
        self.loaded = False
        self.call("Page.navigate", url=url)
        self.wait_for_load(url)

    def follow(self, click):
        """Evaluates an expression that opens another page, and returns when that one has been loaded."""
        self.loaded = False
        self.call("Runtime.evaluate", expression=click)
        self.wait_for_load(click)
        self.settle()

    def wait_for_load(self, what):
        until = time.monotonic() + LIMIT
        while not self.loaded:
            self.next_message(until, what)

    def settle(self):
        """Returns when the page has drawn two more frames: by then it has done all that an event has begun."""
        if self.runs_scripts:
            self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def js(self, expression):
        """Returns the value of an expression, or of the promise that it is, as JSON."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Failed(f"{expression}: {details.get('exception', {}).get('description') or details['text']}")
        return answer["result"].get("value")

    def until(self, condition):
        """Waits until a condition of the page is true, which is asked at each frame."""
        told = self.js("new Promise(done => { const until = performance.now() + %d; const ask = () => (%s) ? done(true) : "
                       "performance.now() > until ? done(false) : requestAnimationFrame(ask); ask(); })"
                       % (LIMIT * 500, condition))
        if not told:
            raise Failed(f"never true: {condition}")

    def press(self, key, shift=False):
        code = {" ": "Space"}.get(key, key)
        more = {"key": key, "code": code, "windowsVirtualKeyCode": KEYS[key], "modifiers": 8 if shift else 0}
        typed = {"Enter": "\r", " ": " "}.get(key)
        if typed:
            self.call("Input.dispatchKeyEvent", type="keyDown", text=typed, **more)
        else:
            self.call("Input.dispatchKeyEvent", type="rawKeyDown", **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", **more)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def move_to(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def click_at(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def size(self, width, height=900):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, scheme="light", medium=""):
        self.call("Emulation.setEmulatedMedia", media=medium, features=[{"name": "prefers-color-scheme", "value": scheme}])

    def scripts(self, allowed):
        self.call("Emulation.setScriptExecutionDisabled", value=not allowed)
        self.runs_scripts = allowed

    def picture(self):
        """Returns a PNG of the window."""
        return base64.b64decode(self.call("Page.captureScreenshot")["data"])


def pipe():
    """Returns the two ends of a pipe, with numbers that leave 3 and 4 free for the browser."""
    return [above(end) for end in os.pipe()]


def above(descriptor):
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return moved
