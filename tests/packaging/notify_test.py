#!/usr/bin/env python3
"""Tests the hook packaging/hooks/notify against real HTTP servers on loopback. Needs curl and openssl."""
import contextlib
import http.server
import json
import os
import pathlib
import shutil
import socket
import ssl
import stat
import subprocess
import tempfile
import threading
import time
import unittest

NOTIFY = pathlib.Path(__file__).resolve().parents[2] / "packaging/hooks/notify"
SECRET = "T0PSECRET"
ROOT = os.geteuid() == 0
HOSTILE = 'a"b\\c\td/é漢🚀\x7f\x01${HOME}`id`%s&<!channel>\'[x](http://e)'


class Chat(http.server.ThreadingHTTPServer):
    """A server that keeps what it was sent, and answers as `answer` says: a status, or a status and headers."""
    daemon_threads = True

    def __init__(self, answer=(200, {}), tls=None, during=None, keep_open=False):
        self.answer, self.during, self.keep_open, self.requests = answer, during, keep_open, []
        self.hang = threading.Event()
        super().__init__(("127.0.0.1", 0), Handler)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.scheme = "https" if tls else "http"
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # a client that goes away, or that does not trust the certificate, is what some tests want

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}/services/{SECRET}?sig={SECRET}"

    @property
    def bodies(self):
        return [json.loads(body) for _, _, body in self.requests]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.during:
            self.server.during()
        self.server.requests.append((self.path, dict(self.headers), body.decode("utf-8")))
        status, headers = self.server.answer
        if status is None:
            self.server.hang.wait()
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(b"ok " + self.path.encode())  # an answer must not be printed
        if self.server.keep_open:
            self.wfile.flush()
            self.server.hang.wait()

    def log_message(self, *_):
        pass


class NotifyTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.bin = self.directory / "bin"
        self.bin.mkdir()
        self.logged = self.directory / "logged"
        self.program("logger", f'printf "%s\\n" "$*" >>{self.logged}')
        self.took = 0.0

    def enterContext(self, context):  # Python 3.11 has it, older ones do not
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def program(self, name, script):
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def chat(self, *args, **kwargs):
        chat = Chat(*args, **kwargs)
        self.addCleanup(chat.server_close)
        self.addCleanup(chat.shutdown)
        self.addCleanup(chat.hang.set)
        return chat

    def target(self, lines, name="notify.conf", mode=0o600):
        path = self.directory / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(lines)
        path.chmod(mode)
        return path

    def run_hook(self, point="before-drain", program=NOTIFY, path=None, **variables):
        environment = {
            "PATH": path or f"{self.bin}:{os.environ['PATH']}", "HAULOUT_NOTIFY_DIR": str(self.directory),
            "HAULOUT_NODE": "worker-1", "HAULOUT_POINT": point, "HAULOUT_STATE": "draining", "HAULOUT_FROM_VERSION": "1.0",
            "HAULOUT_TO_VERSION": "1.1", "HAULOUT_REASONS": "linux-image\nlibc6", **variables,
        }
        began = time.monotonic()
        # A child of its own session has no terminal, as the child of an agent.
        ended = subprocess.run([str(program), point], env={os.fsencode(k): os.fsencode(v) for k, v in environment.items()},
                               stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
        self.took = time.monotonic() - began
        logged = self.logged.read_text() if self.logged.exists() else ""
        for text in (ended.stdout, ended.stderr, logged):
            self.assertNotIn(SECRET, text)
        return ended

    def told(self, **variables):
        ended = self.run_hook(**variables)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return ended

    def failed(self, why, **variables):
        """The hook succeeds, and says in one line, on stderr and in the log, why no message was sent."""
        self.logged.unlink(missing_ok=True)
        ended = self.run_hook(**variables)
        self.assertEqual((ended.returncode, ended.stdout), (0, ""))
        lines = ended.stderr.splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertIn(why, lines[0])
        self.assertRegex(lines[0], "; (no message was sent|the message may not have arrived|it did not accept the message)$")
        self.assertIn(lines[0].removeprefix("haulout-notify: "), self.logged.read_text())
        return ended

    # what is sent

    def test_slack(self):
        chat = self.chat()
        self.target(f"kind=slack\nurl={chat.url}\n")
        self.told()
        (path, headers, _), = chat.requests
        self.assertIn(SECRET, path)
        self.assertEqual(headers["Content-Type"], "application/json")
        self.assertEqual(chat.bodies, [{"text": "worker-1: an update begins; the node is drained next. "
                                                "Version: 1.0 → 1.1. Reason: linux-image; libc6"}])

    def test_teams(self):
        chat = self.chat((202, {}))
        self.target(f"kind = teams\ncluster = prod eu\nurl = {chat.url}\n")
        self.told(point="before-release")
        attachment, = chat.bodies[0]["attachments"]
        self.assertEqual((chat.bodies[0]["type"], attachment["contentType"]),
                         ("message", "application/vnd.microsoft.card.adaptive"))
        card = attachment["content"]
        self.assertEqual((card["type"], card["$schema"], card["version"]),
                         ("AdaptiveCard", "http://adaptivecards.io/schemas/adaptive-card.json", "1.4"))
        self.assertEqual({block["type"] for block in card["body"]}, {"RichTextBlock"})  # never read as Markdown
        self.assertEqual([run["text"] for block in card["body"] for run in block["inlines"]],
                         ["[prod eu] worker-1: the update has succeeded; the node releases its slot next", "Version: 1.0 → 1.1",
                          "Reason: linux-image; libc6"])

    def test_json(self):
        chat = self.chat()
        self.target(f"kind=json\nurl={chat.url}\ncluster=prod\n")
        before = int(time.time())
        self.told(point="after-boot", HAULOUT_STATE="verifying")
        body, = chat.bodies
        sent = time.strptime(body.pop("time"), "%Y-%m-%dT%H:%M:%SZ")
        self.assertLessEqual(abs(time.mktime(sent) - time.timezone - before), 60)
        text = body.pop("text")
        self.assertIn("[prod] worker-1: the update has been verified", text)
        self.assertEqual(body, {"node": "worker-1", "cluster": "prod", "point": "after-boot", "state": "verifying",
                                "fromVersion": "1.0", "toVersion": "1.1", "reasons": ["linux-image", "libc6"]})

    def test_each_point_has_a_sentence_of_its_own(self):
        chat = self.chat()
        self.target(f"kind=slack\nurl={chat.url}\n")
        for point in ("before-drain", "after-drain", "after-boot", "before-release", "a-later-point"):
            self.told(point=point)
        texts = [body["text"] for body in chat.bodies]
        self.assertEqual(len(set(texts)), 5)
        self.assertIn("hook point a-later-point", texts[-1])

    def test_empty_values(self):
        for kind in ("slack", "teams", "json"):
            chat = self.chat()
            self.target(f"kind={kind}\nurl={chat.url}\n")
            self.told(HAULOUT_FROM_VERSION="", HAULOUT_TO_VERSION="", HAULOUT_REASONS="", HAULOUT_STATE="")
            self.assertNotIn("Version:", str(chat.bodies))
            self.assertNotIn("Reason:", str(chat.bodies))
            if kind == "json":
                self.assertEqual(chat.bodies[0]["reasons"], [])

    def test_hostile_values(self):
        hostile = {"HAULOUT_NODE": HOSTILE + "\nline", "HAULOUT_STATE": HOSTILE, "HAULOUT_FROM_VERSION": HOSTILE,
                   "HAULOUT_TO_VERSION": HOSTILE + "'", "HAULOUT_REASONS": HOSTILE + "\n\n\\\n\"\\n"}
        seen = HOSTILE.replace("\t", " ").replace("\x7f\x01", " ")  # in a text of one line
        for kind in ("slack", "teams", "json"):
            with self.subTest(kind):
                chat = self.chat()
                self.target(f"kind={kind}\nurl={chat.url}\ncluster={HOSTILE}\n")
                self.told(**hostile)
                body, = chat.bodies
                if kind == "json":
                    self.assertEqual(body["node"], HOSTILE + "\nline")
                    self.assertEqual((body["state"], body["cluster"]), (HOSTILE, HOSTILE))
                    self.assertEqual((body["fromVersion"], body["toVersion"]), (HOSTILE, HOSTILE + "'"))
                    self.assertEqual(body["reasons"], [HOSTILE, "", "\\", '"\\n'])
                    self.assertIn(f"[{seen}] {seen} line: an update", body["text"])
                elif kind == "teams":
                    runs = [run["text"] for block in body["attachments"][0]["content"]["body"] for run in block["inlines"]]
                    self.assertEqual(runs, [f"[{seen}] {seen} line: an update begins; the node is drained next",
                                            f"Version: {seen} → {seen}'", f'Reason: {seen}; ; \\; "\\n'])
                else:
                    self.assertNotIn("<", body["text"])
                    undone = body["text"].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
                    self.assertIn(f"[{seen}] {seen} line: an update", undone)

    def test_long_values_are_cut_between_characters(self):
        for kind in ("slack", "teams", "json"):
            for character in ("x", "é", "漢", "🚀", '"', "\\"):
                with self.subTest(kind + character):
                    chat = self.chat()
                    self.target(f"kind={kind}\nurl={chat.url}\n")
                    self.told(HAULOUT_NODE=character * 10_000, HAULOUT_REASONS="a" + character * 10_000)
                    self.assertLess(len(chat.requests[0][2].encode()), 20_000)
                    self.assertIn("a" + character * 100, json.dumps(chat.bodies[0], ensure_ascii=False).replace(
                        "\\" + character, character))
                    self.assertIn(character[:1] + "…", json.dumps(chat.bodies[0], ensure_ascii=False))

    def test_what_is_not_utf8_is_replaced(self):
        bad = [b"\xff", b"\xc3", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\x80", b"\xe6\xbc", b"\xf0\x8f\xbf\xbf"]
        chat = self.chat()
        self.target(f"kind=json\nurl={chat.url}\n")
        self.told(HAULOUT_STATE=os.fsdecode(b"".join(b"<" + each + b">" for each in bad)))
        self.assertEqual(chat.bodies[0]["state"], "".join("<" + "?" * len(each) + ">" for each in bad))

    # whom it is sent to

    def test_several_targets_and_points(self):
        slack, teams, other = self.chat(), self.chat(), self.chat()
        self.target(f"kind=slack\nurl={slack.url}\npoints=before-drain, before-release\n")
        self.target(f"kind=teams\nurl={teams.url}\n", "notify.d/teams.conf")
        self.target(f"kind=json\nurl={other.url}\n", "notify.d/other.conf.bak")
        for point in ("before-drain", "after-drain", "before-release"):
            self.told(point=point)
        self.assertEqual([len(chat.requests) for chat in (slack, teams, other)], [2, 3, 0])

    def test_one_bad_target_does_not_keep_a_message_from_the_others(self):
        chat = self.chat()
        self.target("kind=slack\n")
        self.target(f"kind=slack\nurl={chat.url}", "notify.d/good.conf")  # without an end of its last line
        self.assertIn("url does not begin", self.run_hook().stderr)
        self.assertEqual(len(chat.requests), 1)

    def test_no_target(self):
        self.failed("there is neither")

    def test_a_test_message_shows_by_its_exit_status_whether_it_was_sent(self):
        chat = self.chat()
        self.assertEqual(self.run_hook("test").returncode, 1)
        self.target(f"kind=slack\nurl={chat.url}\npoints=after-boot\n")
        ended = self.run_hook("test", HAULOUT_NODE="", HAULOUT_FROM_VERSION="", HAULOUT_TO_VERSION="", HAULOUT_REASONS="")
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        self.assertEqual(chat.bodies, [{"text": f"{os.uname().nodename}: this is a test of the notifications; "
                                                "nothing happens to the node"}])
        chat.answer = (404, {})
        self.assertEqual(self.run_hook("test").returncode, 1)

    # failures do not harm the update

    def test_a_server_that_hangs(self):
        chats = [self.chat((None, {})) for _ in range(6)]
        for number, chat in enumerate(chats):
            self.target(f"kind=slack\nurl={chat.url}\ntimeout=2\nretries=0\n", f"notify.d/{number}.conf")
        ended = self.run_hook()
        self.assertEqual((ended.returncode, ended.stdout), (0, ""))
        self.assertEqual(ended.stderr.count("imed out"), 6, ended.stderr)
        self.assertLess(self.took, 11)  # one after the other they would take 12 s

    def test_a_curl_that_hangs_is_ended(self):
        copy = self.directory / "copy"
        text = NOTIFY.read_text().replace("\nlimit=28\n", "\nlimit=1\n")
        self.assertIn("\nlimit=1\n", text)
        copy.write_text(text)
        copy.chmod(0o755)
        self.program("curl", "trap '' TERM\nexec sleep 100")
        self.target(f"kind=slack\nurl=https://example.invalid/{SECRET}\n")
        self.failed("no answer within 1 s", program=copy)

    def test_a_server_that_fails(self):
        chat = self.chat((500, {}))
        self.target(f"kind=slack\nurl={chat.url}\nretries=1\n")
        self.failed("HTTP status 500")
        self.assertEqual(len(chat.requests), 2)

    def test_a_server_that_asks_for_another_attempt_in_an_hour(self):
        chat = self.chat((429, {"Retry-After": "3600"}))
        self.target(f"kind=slack\nurl={chat.url}\n")
        self.failed("HTTP status 429")

    def test_an_answer_that_does_not_end(self):
        chat = self.chat((200, {"Content-Length": "100000"}), keep_open=True)
        self.target(f"kind=slack\nurl={chat.url}\ntimeout=1\nretries=1\n")
        self.failed("imed out")

    def test_a_redirect_is_not_followed(self):
        other = self.chat()
        chat = self.chat((302, {"Location": other.url}))
        self.target(f"kind=slack\nurl={chat.url}\n")
        self.failed("HTTP status 302")
        self.assertEqual(other.requests, [])

    def test_nobody_listens(self):
        with contextlib.closing(socket.socket()) as held:  # bound, so that no other program gets the port
            held.bind(("127.0.0.1", 0))
            self.target(f"kind=slack\nurl=http://127.0.0.1:{held.getsockname()[1]}/{SECRET}\nretries=0\n")
            self.failed("connect")

    def test_tls(self):
        certificate = self.directory / "server.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", certificate,
                        "-out", self.directory / "ca.pem"], check=True, capture_output=True)
        certificate.write_text(certificate.read_text() + (self.directory / "ca.pem").read_text())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        chat = self.chat(tls=context)
        self.target(f"kind=slack\nurl={chat.url}\n")
        self.failed("certificate")
        self.assertEqual(chat.requests, [])
        self.target(f"kind=slack\nurl={chat.url}\ncacert={self.directory}/ca.pem\n")
        self.told()
        self.assertEqual(len(chat.requests), 1)
        plain = self.chat()  # speaks no TLS
        self.target(f"kind=slack\nurl={plain.url.replace('http:', 'https:')}\n")
        self.failed("SSL")

    def test_a_proxy(self):
        chat = self.chat()
        self.target(f"kind=slack\nurl=http://chat.invalid/{SECRET}\nproxy={chat.url.split('/services')[0]}\n")
        self.told()
        self.assertEqual(chat.requests[0][0], f"http://chat.invalid/{SECRET}")

    def test_braces_in_a_url_are_not_a_list(self):
        chat = self.chat()
        self.target(f"kind=slack\nurl={chat.url}{{a,b}}[1-3]\n")
        self.told()
        (path, _, _), = chat.requests
        self.assertTrue(path.endswith("{a,b}[1-3]"), path)

    def test_without_curl(self):
        chat = self.chat()
        self.target(f"kind=slack\nurl={chat.url}\n")
        for name in ("sh", "stat", "id", "tr", "uname", "date", "awk", "timeout", "sed", "tail"):
            (self.bin / name).symlink_to(shutil.which(name))
        self.failed("curl is not installed", path=str(self.bin))
        self.assertEqual(self.run_hook("test", path=str(self.bin)).returncode, 1)

    # the configuration

    def test_a_file_that_others_may_read_or_change_is_refused(self):
        chat = self.chat()
        lines = f"kind=slack\nurl={chat.url}\n"
        for mode in (0o644, 0o640, 0o604, 0o620, 0o602, 0o666, 0o610):
            with self.subTest(oct(mode)):
                self.target(lines, mode=mode)
                self.failed("chmod 600")
        self.assertEqual(chat.requests, [])
        for mode in (0o600, 0o400):
            self.target(lines).chmod(mode)
            self.told()
        self.assertEqual(len(chat.requests), 2)

    @unittest.skipUnless(ROOT, "only root can give a file away")
    def test_a_file_of_another_user_is_refused(self):
        chat = self.chat()
        path = self.target(f"kind=slack\nurl={chat.url}\n")
        os.chown(path, 12345, 0)
        self.failed("chown root")
        real = self.directory / "elsewhere"
        path.rename(real)
        path.symlink_to(real)  # of a link, the file counts
        self.failed("chown root")
        self.assertEqual(chat.requests, [])

    def test_bad_configurations(self):
        good = f"https://example.invalid/{SECRET}"
        for lines, why in (
                (f"url={good}\n", "kind is not"),
                (f"kind=irc\nurl={good}\n", "kind is not"),
                ("kind=slack\n", "url does not begin"),
                (f"kind=slack\nurl=ftp://{SECRET}\n", "url does not begin"),
                (f"kind=slack\nurl=file:///{SECRET}\n", "url does not begin"),
                (f"kind=slack\nurl=\"{good}\"\n", "url does not begin"),
                (f"kind=slack\nurl={good}\"\noutput=/tmp/x\n", "line 3"),
                (f"kind=slack\nurl={good}\"\n", "url has a blank"),
                (f"kind=slack\nurl={good}\\\n", "url has a blank"),
                (f"kind=slack\nurl={good} -o /tmp/x\n", "url has a blank"),
                (f"kind=slack\nurl={good}é\n", "url has a blank"),
                (f"kind=slack\n{good}\n", "line 2"),
                (f"kind=slack\n{good}?a=b\n", "line 2"),
                (f"# a comment\n\nkind=slack\nurl={good}\nextra=1\n", "line 5"),
                (f"kind=slack\nurl={good}\ntimeout=0\n", "timeout"),
                (f"kind=slack\nurl={good}\ntimeout=21\n", "timeout"),
                (f"kind=slack\nurl={good}\ntimeout=1s\n", "timeout"),
                (f"kind=slack\nurl={good}\ntimeout=08\n", "timeout"),
                (f"kind=slack\nurl={good}\nretries=6\n", "retries"),
                (f"kind=slack\nurl={good}\nretries=-1\n", "retries"),
                (f"kind=slack\nurl={good}\npoints=after-reboot\n", "points"),
                (f"kind=slack\nurl={good}\npoints=*\n", "points"),
                (f"kind=slack\nurl={good}\nproxy=http://p\"\n", "proxy"),
                (f"kind=slack\nurl={good}\ncacert=/a b\n", "cacert"),
        ):
            with self.subTest(lines):
                self.target(lines)
                self.failed(why)

    def test_the_configuration_is_not_executed(self):
        chat = self.chat()
        proof = self.directory / "executed"
        self.target(f"kind=slack\nurl={chat.url}\ncluster=$(touch {proof})`touch {proof}`;touch {proof}\n")
        self.told()
        self.assertFalse(proof.exists())
        self.assertIn("$(touch", chat.bodies[0]["text"])

    def test_a_directory_in_place_of_a_file(self):
        (self.directory / "notify.conf").mkdir(mode=0o700)
        self.failed("is not a file")

    def test_the_example_is_complete(self):
        chat = self.chat()
        example = (NOTIFY.parent / "notify.conf").read_text()
        self.target(example)
        self.failed("url has a blank")  # of the example's own URL the end is missing
        lines = [line.removeprefix("#") if "=" in line and not line.startswith("# ") else line for line in example.splitlines()]
        keys = {line.split("=")[0].strip() for line in lines if "=" in line and not line.startswith("#")}
        self.assertEqual(keys, {"kind", "url", "cluster", "points", "timeout", "retries", "proxy", "cacert"})
        mine = {"url": chat.url, "proxy": "", "cacert": ""}
        self.target("\n".join(f"{line.split('=')[0]}={mine[line.split('=')[0].strip()]}"
                              if "=" in line and line.split("=")[0].strip() in mine else line for line in lines))
        self.told()
        self.assertIn("[prod]", chat.bodies[0]["text"])

    # the secret

    def test_the_url_is_in_no_list_of_processes(self):
        seen = []

        def look():
            for process in pathlib.Path("/proc").glob("[0-9]*"):
                with contextlib.suppress(OSError):
                    command = (process / "cmdline").read_bytes()
                    if SECRET.encode() in command:
                        seen.append(command)
                    if command.startswith(b"curl\0"):
                        environment = (process / "environ").read_bytes()
                        seen.extend([environment] if SECRET.encode() in environment else [])
                        curls.append(command)

        curls = []
        chat = self.chat(during=look)
        self.target(f"kind=slack\nurl={chat.url}\n")
        self.told(url="exported by the caller", proxy="exported by the caller")
        self.assertEqual(seen, [])
        self.assertIn(b"curl\0-q\0--config\0-\0", curls)

    def test_no_program_gets_the_url_as_an_argument(self):
        arguments = self.directory / "arguments"
        for name in ("curl", "awk", "sed", "tail", "tr", "stat", "timeout", "date", "uname", "id"):
            self.program(name, f'printf "{name} %s\\n" "$*" >>{arguments}\nexec {shutil.which(name)} "$@"')
        chat = self.chat((404, {}))
        self.target(f"kind=json\nurl={chat.url}\n")
        self.failed("HTTP status 404")
        self.target(f"kind=json\nurl=http://127.0.0.1:1/{SECRET}\nretries=0\n")
        self.failed("connect")
        text = arguments.read_text()
        self.assertIn("curl -q --config -\n", text)
        self.assertNotIn(SECRET, text)

    def test_what_curl_says_is_not_shown_if_it_has_the_url(self):
        url = f"https://example.invalid/{SECRET}"
        self.program("curl", f'cat >/dev/null\necho "curl: (3) bad URL {url}" >&2\nexit 3')
        self.target(f"kind=slack\nurl={url}\n")
        self.failed("curl ended with exit status 3")

    def test_a_curlrc_changes_nothing(self):
        chat = self.chat()
        (self.directory / ".curlrc").write_text('proxy = "http://127.0.0.1:1"\n')
        self.target(f"kind=slack\nurl={chat.url}\n")
        self.told(HOME=str(self.directory))
        self.assertEqual(len(chat.requests), 1)


class ProgramTest(unittest.TestCase):
    def test_it_is_executable_and_has_a_usage(self):
        self.assertTrue(NOTIFY.stat().st_mode & stat.S_IXUSR)
        ended = subprocess.run([NOTIFY], capture_output=True, text=True, check=False)
        self.assertEqual(ended.returncode, 2)
        self.assertIn("usage", ended.stderr)


if __name__ == "__main__":
    unittest.main()
