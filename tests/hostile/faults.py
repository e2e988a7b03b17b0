"""Faults of connections and servers for one request. A fault is a coroutine fault(wire, make, rng): `make()` carries the
request out and returns its Answer, and `wire` sends to the client. themes.py decides which requests meet which fault.

SURVIVABLE faults pass: every command must succeed although each of them occurs once. NONSENSE is not an answer of a
Kubernetes API: the command may succeed or fail, but it must not report false success, crash or fail without a message.
"""
import asyncio
import json

from api import Answer, status

HTML = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>"


def page(code, body=HTML, kind="text/html"):
    async def fault(wire, make, rng):
        await wire.send(Answer(code, body, {"Content-Type": kind}))
    return fault


def refusal(code, retry_after=None, message="try again later", reason=None):
    async def fault(wire, make, rng):
        answer = status(code, message, reason)
        if retry_after is not None:
            answer.headers["Retry-After"] = str(retry_after)
        await wire.send(answer)
    return fault


async def reset(wire, make, rng):
    wire.reset()


async def lost(wire, make, rng):
    """The server carries the request out, and the answer is lost."""
    make()
    wire.reset()


async def close(wire, make, rng):
    wire.close()


async def half_head(wire, make, rng):
    await wire.raw(b"HTTP/1.1 200 OK\r\nContent-Ty")
    wire.close()


async def half_body(wire, make, rng):
    whole = wire.encode(make())
    await wire.raw(whole[:max(40, rng.randrange(len(whole)))])
    wire.close()


async def slow_drip(wire, make, rng):
    whole = wire.encode(make())
    for start in range(0, len(whole), max(1, len(whole) // 5)):
        await wire.raw(whole[start:start + max(1, len(whole) // 5)])
        await asyncio.sleep(0.03)


async def late(wire, make, rng):
    await asyncio.sleep(rng.choice([0.2, 0.7, 1.5]))
    await wire.send(make())


SURVIVABLE = {
    "429": refusal(429), "429 after 1": refusal(429, 1), "503": refusal(503), "503 after 1": refusal(503, 1),
    "500": refusal(500), "504": refusal(504), "500 without reason": refusal(500, reason=""),
    "503 page": page(503), "502 page": page(502), "504 text": page(504, b"upstream timed out", "text/plain"),
    "429 text": page(429, b"The apiserver is shutting down, please try again later.\n", "text/plain"),
    "reset": reset, "lost": lost, "closed": close, "drip": slow_drip, "late": late,
}
# If these are the first answers, a client may conclude that the server is not an API server.
HALVES = {"half a head": half_head, "half a body": half_body}


def body(content, kind="application/json", code=200):
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return page(code, text, kind)


def raw(data):
    async def fault(wire, make, rng):
        await wire.raw(data)
        wire.close()
    return fault


async def no_type(wire, make, rng):
    answer = make()
    await wire.send(Answer(answer.code, answer.body, {}))


async def wrong_type(wire, make, rng):
    answer = make()
    await wire.send(Answer(answer.code, answer.body, {"Content-Type": "text/html; charset=klingon"}))


async def other_code(wire, make, rng):
    answer = make()
    await wire.send(Answer(rng.choice([204, 206, 301, 302, 304, 307, 418, 999]), answer.body))


async def too_short(wire, make, rng):
    """Content-Length is larger than the body."""
    head, _, text = wire.encode(make()).partition(b"\r\n\r\n")
    await wire.raw(head.replace(b"Content-Length: ", b"Content-Length: 9") + b"\r\n\r\n" + text)
    wire.close()


async def too_long(wire, make, rng):
    """The body is longer than Content-Length. The client must not use the rest as the next answer."""
    whole = wire.encode(make())
    await wire.raw(whole + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


async def two_answers(wire, make, rng):
    whole = wire.encode(make())
    await wire.raw(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n" + whole)


async def failure_in_200(wire, make, rng):
    answer = status(500, "it went wrong")
    await wire.send(Answer(200, answer.body))


async def endless_head(wire, make, rng):
    await wire.raw(b"HTTP/1.1 200 OK\r\n")
    for number in range(200):
        await wire.raw(b"X-%d: " % number + b"a" * 1000 + b"\r\n")
    wire.close()


NONSENSE = {
    "html 200": page(200), "empty 200": body(b""), "null": body(None), "{}": body({}), "[]": body([]), "7": body(7),
    "a list of nothing": body({"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"},
                               "items": []}),
    "no items": body({"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}),
    "a pod": body({"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x", "namespace": "y", "uid": "z"}}),
    "a success": body({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}),
    "a failure with 200": failure_in_200, "no json": body(b'{"kind":"PodList","items":[{'),
    "deep": body(b"[" * 100000), "deep object": body(b'{"a":' * 50000), "long number": body(b'{"metadata":' + b"9" * 5000),
    "no utf-8": body(b'{"kind":"\xff\xfe\x00"}'), "nul": body(b"\x00" * 64),
    "no type": no_type, "wrong type": wrong_type, "other code": other_code,
    "bad chunk": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n"),
    "huge chunk": raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}\r\n"),
    "two lengths": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\n{}abc"),
    "absurd length": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n{}"),
    "negative length": raw(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}"),
    "no http": raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "tls": raw(b"\x15\x03\x01\x00\x02\x02\x28"), "endless head": endless_head,
    "too short": too_short, "too long": too_long, "early hints": two_answers,
    "401": refusal(401, message="Unauthorized"), "403": refusal(403, message="pods is forbidden: User \"x\" cannot"),
    "409": refusal(409), "410": refusal(410), "400": refusal(400), "404 page": page(404), "405": refusal(405),
    "422": refusal(422), "413 page": page(413), "423": page(423), "507": refusal(507),
    "retry after absurd": refusal(429, "99999999999999999999"), "retry after negative": refusal(503, "-5"),
    "retry after words": refusal(503, "soon"), "retry after long ago": refusal(503, "Thu, 01 Jan 1970 00:00:00 GMT"),
    "retry after 0": refusal(429, "0"),
}


async def endless_body(wire, make, rng):
    """A list that is much longer than a client may accept."""
    await wire.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    text = b'{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":['
    await wire.chunk(text)
    filler = b" " * 1048576
    for _ in range(rng.choice([80, 300])):
        await wire.chunk(filler)
    wire.close()


def full_of(item, ahead=b'"items":[', end=b"]}", size=4 * 1000 * 1000):
    """A list of the largest allowed size, with as many values as fit."""
    head = b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},' + ahead
    return body(head + (item + b",") * ((size - len(head)) // (len(item) + 1)) + item + end)


async def endless_pages(wire, make, rng):
    """A list of pods of n1 with an endless number of pages, of which each is valid."""
    pod = {"kind": "Pod", "apiVersion": "v1", "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}}
    labels = {f"label-{number}": "x" * 20 for number in range(30)}
    items = [{**pod, "metadata": {"name": f"p{rng.random()}", "namespace": "shop", "uid": f"{rng.random()}",
                                  "resourceVersion": "9", "labels": labels}} for _ in range(500)]
    metadata = {"resourceVersion": "9", "continue": f"{rng.random()}"}
    page = {"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}
    await wire.send(Answer(200, json.dumps(page).encode()))


MONSTERS = {"endless body": endless_body, "endless head": endless_head, "endless pages": endless_pages,
            "full of numbers": full_of(b"0"), "full of objects": full_of(b"{}"), "full of lists": full_of(b"[]"),
            "full of keys": full_of(b'{"a":0}'), "almost too many values": full_of(b'{"a":0}', size=8 * 149000),
            "full of texts": full_of(b'"' + b"x" * 20 + b'"')}


# ---- watches: fault(wire, watch, rng) is called before the next event; if it returns False, the watch ends
def error_line(code, message, reason):
    item = json.loads(status(code, message, reason).body)
    return (json.dumps({"type": "ERROR", "object": item}) + "\n").encode()


def watch_line(content):
    async def fault(wire, watch, rng):
        await wire.chunk(content if isinstance(content, bytes) else (json.dumps(content) + "\n").encode())
        return True
    return fault


async def watch_expires(wire, watch, rng):
    await wire.chunk(error_line(410, "too old resource version: 1 (272)", "Expired"))
    await wire.raw(b"0\r\n\r\n")
    return False


async def watch_ends(wire, watch, rng):
    await wire.raw(b"0\r\n\r\n")
    return False


async def watch_resets(wire, watch, rng):
    wire.reset()
    return False


async def watch_half_line(wire, watch, rng):
    await wire.chunk(b'{"type":"MODIFIED","object":{"kind":"Pod","metadata":{"na')
    wire.close()
    return False


async def watch_replays(wire, watch, rng):
    """Sends old events again, as a cache that has lost its revision does."""
    entries = [e for e in watch.api.cluster.log if e[1] == watch.plural and e[2] != "DELETED" and watch.selector(e[3])]
    for entry in entries[-rng.randrange(1, 6):]:
        await wire.chunk(watch.line(entry[2], entry[3]))
    return True


WATCH_PASSING = {"ends": watch_ends, "resets": watch_resets, "half a line": watch_half_line, "expires": watch_expires,
                 "an empty line": watch_line(b"\n"),
                 "a 500": watch_line(error_line(500, "etcdserver: leader changed", "InternalError"))}
WATCH_NONSENSE = {
    "replays": watch_replays, "no json": watch_line(b"{{{{\n"), "null": watch_line(None), "a type": watch_line({"type": "X"}),
    "no object": watch_line({"type": "DELETED"}),
    "another kind": watch_line({"type": "DELETED", "object": {"kind": "Secret", "metadata": {"name": "x", "uid": "y"}}}),
    "no metadata": watch_line({"type": "MODIFIED", "object": {"kind": "Pod"}}),
    "future": watch_line({"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "999999999"}}}),
    "odd revision": watch_line({"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "-x"}}}),
    "a 403": watch_line(error_line(403, "forbidden", "Forbidden")), "binary": watch_line(b"\xff\x00\xfe\n"),
}


async def watch_endless_line(wire, watch, rng):
    filler = b" " * 1048576
    for _ in range(rng.choice([40, 120])):
        await wire.chunk(filler)
    return True


WATCH_MONSTERS = {"endless line": watch_endless_line}
