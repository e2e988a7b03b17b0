"""A server on loopback that answers for one world, at a port that the kernel chooses, and records all requests."""
import asyncio
import dataclasses
import socket
import struct

from api import Api, Request, Selector, Watch, route
from cluster import node_of


@dataclasses.dataclass
class Seen:
    """One request and its result."""
    at: float
    kind: str
    request: Request
    namespace: str
    name: str
    fault: str = ""
    code: int = 0

    def text(self, began):
        query = "&".join(f"{key}={value}" for key, value in self.request.query.items())
        what = f"{self.at - began:7.3f} {self.request.method} {self.request.path}{'?' if query else ''}{query}"
        body = f" {self.request.body.decode(errors='replace')}" if self.request.body else ""
        return f"{what}{body} -> {self.fault or self.code}"


class Wire:
    """The connection to the client."""

    def __init__(self, writer):
        self.writer, self.open = writer, True

    @staticmethod
    def encode(answer):
        headers = "".join(f"{key}: {value}\r\n" for key, value in answer.headers.items())
        return f"HTTP/1.1 {answer.code} X\r\n{headers}Content-Length: {len(answer.body)}\r\n\r\n".encode() + answer.body

    async def raw(self, data):
        self.writer.write(data)
        await self.writer.drain()

    async def chunk(self, data):
        await self.raw(b"%x\r\n" % len(data) + data + b"\r\n")

    async def send(self, answer):
        await self.raw(self.encode(answer))

    def close(self):
        self.open = False
        self.writer.close()

    def reset(self):
        self.open = False
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Server:
    """Serves one cluster. `plan` (plans.py) decides what goes wrong."""

    def __init__(self, cluster, plan, shape):
        self.cluster, self.plan = cluster, plan
        self.api = Api(cluster, shape)
        self.seen = []
        self.views = {}  # node -> (time, pods, whether it was cordoned) of the last list of its pods
        self.tasks = set()
        self.socket = socket.socket()
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    async def listen(self):
        """Starts to accept connections. Until then they are refused."""
        self.server = await asyncio.start_server(self.connected, sock=self.socket, limit=4 * 1048576)

    async def stop(self):
        if hasattr(self, "server"):
            self.server.close()
        self.socket.close()
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def connected(self, reader, writer):
        task = asyncio.current_task()
        self.tasks.add(task)
        wire = Wire(writer)
        try:
            while wire.open:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                method, target, _ = head.split("\r\n", 1)[0].split(" ")
                length = next((int(line.split(":")[1]) for line in head.split("\r\n")
                               if line.lower().startswith("content-length:")), 0)
                await self.answer(wire, Request.parse(method, target, await reader.readexactly(length)))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        except asyncio.CancelledError:
            if not task.cancelling():
                raise
        finally:
            self.tasks.discard(task)
            writer.close()

    async def answer(self, wire, request):
        found = route(request)
        seen = Seen(asyncio.get_running_loop().time(), found.kind, request, found.namespace, found.name)
        self.seen.append(seen)
        if delay := self.plan.delay(found, request):
            await asyncio.sleep(delay)

        def make():
            answer = self.carry_out(request, found)
            seen.code = answer.code
            return answer
        if fault := self.plan.fault(found, request):
            seen.fault = fault.name
            await fault.strike(wire, make, fault.rng)
        elif found.kind.startswith("watch "):
            seen.code = 200
            await self.watch(wire, request, found)
        else:
            await wire.send(make())

    def carry_out(self, request, found):
        lies = self.plan.lies(found, request)
        if found.kind == "list pods" and "continue" not in request.query:
            for node, pods in self.pods_by_node(Selector(request).fields.get("spec.nodeName")).items():
                item = self.cluster.get("nodes", node)
                cordoned = bool(item and item.get("spec", {}).get("unschedulable"))
                self.views[node] = (asyncio.get_running_loop().time(), pods, cordoned)
        if found.kind.startswith("watch "):  # a planned fault breaks an answer with a body: a list
            return self.api.handle(request, dataclasses.replace(found, kind=found.kind.replace("watch", "list")))
        return self.api.list(request, found, lies) if found.kind.startswith("list ") else self.api.handle(request, found)

    def pods_by_node(self, node):
        return {node: [pod for pod in self.cluster.all("pods") if node_of(pod) == node]} if node else {}

    async def watch(self, wire, request, found):
        await wire.raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
        watch = Watch(self.api, request, found, self.plan.lies(found, request))
        try:
            while wire.open:
                for kind, item in watch.take():
                    if (fault := self.plan.watch_fault(found)) and not await self.strike(wire, watch, fault):
                        return
                    for _ in range(self.plan.copies):
                        await wire.chunk(watch.line(kind, item))
                await self.bookmark_or_wait(wire, watch)
        finally:
            watch.close()

    async def strike(self, wire, watch, fault):
        self.seen.append(Seen(asyncio.get_running_loop().time(), "watch " + watch.plural, Request("", "", {}), "", "",
                              "in the watch: " + fault.name))
        return await fault.strike(wire, watch, fault.rng)

    @staticmethod
    async def bookmark_or_wait(wire, watch):
        try:
            await asyncio.wait_for(watch.news.wait(), 2)
        except asyncio.TimeoutError:
            await wire.chunk(watch.bookmark())
