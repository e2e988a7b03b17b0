#!/usr/bin/env python3
"""Runs the real program in hostile worlds: each seed has a fake API server on loopback, and judges check the promises.

  hostile.py --seeds N [--first K]   N worlds, and the worlds that once found a defect
  hostile.py --seed K                world K again, with its trace: requests, faults, output of the program
  hostile.py --always                only the worlds that once found a defect
  … --theme NAME                     only the worlds of this theme; with --seed: the world of this seed and theme

The seed decides the objects of the world, the command and the faults (worlds.py). judge.py contains the promises.
The exit code is 1 if a promise was broken.
"""
import argparse
import asyncio
import collections
import concurrent.futures
import ctypes
import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import judge  # noqa: E402
import worlds  # noqa: E402
from server import Server  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACES = ROOT / "build/results/hostile"  # traces of worlds in which a promise was broken
# Number of worlds that run at a time in one process. Most of them wait most of the time.
TOGETHER = 60

# Seeds of worlds that once found a defect, by theme. If you change a theme, choose seeds that would still find it.
FOUND = {
    "dead_kubelet": (40211, 40347),  # --grace-period had no effect on terminating pods
    "stands_at_the_end": (1, 4, 5),  # no message while the check that the node is empty failed
    "one_fault": (14, 104, 110, 153, 259),  # one failure ended cordon, uncordon and drain -l
    "silent_at_first": (124, 322),  # a server that listened a moment later ended them, too
    "liars": (30, 56, 238, 20218),  # other nodes' pods, and other nodes, when selectors were ignored
    "odd_objects": (327, 481, 1103),  # abort() by a claimRef without namespace, owners without name, without apiVersion
    "unknown_name": (5, 107, 210),  # the nodes that exist were changed all the same
    "fit_lists": (40261, 40307),  # --check-fit=require treated any object as an empty list
    "slow_admission": (40200,),  # quick pods waited behind slow ones
    "monsters": (2, 19),  # a page of two million numbers took 119 MiB of an agent's memory
    "asked_responders": (93, 95, 122, 164),  # requests of other nodes were withdrawn when selectors were ignored
    "short_timeout": (40461,),  # a --timeout up to --settle failed on an empty node
    "agent": (1502, 1521, 1935),  # an unreadable pause, right after the slot was taken, cost a whole backoff
}
ALWAYS = [(theme, seed) for theme, seeds in FOUND.items() for seed in seeds]


# The kernel's figure for a child's memory includes the memory of its parent at the start. So a shell, which uses little
# memory, starts the program, and this process, which uses much more, adopts it.
LAUNCH = '"$@" & echo $! > "$TELL"'
PR_SET_CHILD_SUBREAPER = 36


class Program:
    """A child process. Records its output with the time of each line, and its exit code and memory."""

    def __init__(self, command, home):
        self.loop = asyncio.get_running_loop()
        self.lines, self.readers = [], []
        self.code = 0
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        told, tell = os.pipe()
        self.shell = subprocess.Popen(["/bin/sh", "-c", LAUNCH, "sh", *command], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=home, pass_fds=(tell,),
                                      env={"PATH": os.environ["PATH"], "HOME": home, "LC_ALL": "C.UTF-8",
                                           "TELL": f"/proc/self/fd/{tell}"})
        os.close(tell)
        with open(told, encoding="ascii") as pipe:
            self.pid = int(pipe.readline())
        self.shell.wait()
        self.ended = self.loop.create_future()
        self.handle = os.pidfd_open(self.pid)
        self.loop.add_reader(self.handle, self.collect)

    def collect(self):
        self.loop.remove_reader(self.handle)
        os.close(self.handle)
        _, status, usage = os.wait4(self.pid, 0)
        self.code = os.waitstatus_to_exitcode(status)
        self.ended.set_result((self.loop.time(), usage.ru_maxrss * 1024))

    async def follow(self):
        for stream in ("stdout", "stderr"):
            reader = asyncio.StreamReader(limit=16 * 1048576)
            await self.loop.connect_read_pipe(lambda reader=reader: asyncio.StreamReaderProtocol(reader),
                                              getattr(self.shell, stream))
            self.readers.append(asyncio.create_task(self.read(stream, reader)))

    async def read(self, stream, reader):
        while line := await reader.readline():
            self.lines.append((self.loop.time(), stream, line.decode(errors="replace").rstrip("\n")))

    def signal(self, number):
        if not self.ended.done():
            os.kill(self.pid, number)


class Lateness:
    """How late timers of this process fired. On an overloaded machine time limits prove nothing."""

    def __init__(self):
        self.last, self.most = 0.0, collections.deque(maxlen=600)

    async def watch(self):
        loop = asyncio.get_running_loop()
        while True:
            before = loop.time()
            await asyncio.sleep(0.1)
            self.last = loop.time() - before - 0.1
            self.most.append(self.last)

    def lately(self):
        """Returns the largest delay of the last minute, in seconds."""
        return max(self.most, default=0.0)


def over(world, server, program, began, now, busy):
    """Returns True if the program is to be ended by a signal now."""
    if now - began > world.patience:
        return True
    if world.expect == "ready":
        return any(judge.moments_of_ready(world))
    if world.expect != "told":
        return False
    run = judge.Run(world, server.seen, {}, program.lines, 0, 0, began, now)
    since = judge.obstacle_since(run)
    return bool(since) and (bool(judge.told_since(run, since)) or now - since > judge.SAY_WITHIN + busy)


async def play(theme, seed, binary, lateness):
    loop = asyncio.get_running_loop()
    timers = []
    world = worlds.make(seed, theme, lambda delay, call: timers.append(loop.call_later(delay, call)))
    server = Server(world.cluster, world.plan, world.shape)
    if world.mute:
        listening = asyncio.create_task(late_start(server, world.mute))
    else:
        await server.listen()
    with tempfile.TemporaryDirectory(prefix="hostile-") as home:
        began, stopped, killed = loop.time(), 0.0, False
        world.furnish(pathlib.Path(home), server.port)
        program = Program([str(binary), *world.arguments(server.port, home)], home)
        await program.follow()
        while not program.ended.done():
            await asyncio.wait({program.ended}, timeout=0.25)
            now = loop.time()
            if not stopped and over(world, server, program, began, now, 4 * lateness.lately()):
                stopped = now
                program.signal(signal.SIGTERM)
            elif stopped and not killed and now - stopped > world.ends_within + 4 * lateness.lately():
                killed = True
                program.signal(signal.SIGKILL)
        ended, memory = await program.ended
        await asyncio.gather(*program.readers)
    if world.mute:
        await listening
    run = judge.Run(world, server.seen, server.views, program.lines, program.code, memory, began, ended,
                    stopped, killed, 4 * lateness.lately())
    found = judge.verdicts(run)
    for timer in timers:
        timer.cancel()
    await server.stop()
    return run, found


async def late_start(server, seconds):
    await asyncio.sleep(seconds)
    await server.listen()


def trace(run, found):
    lines = [f"seed {run.world.seed} ({run.world.theme}): haulout {' '.join(run.world.arguments('PORT'))}",
             f"expected: {run.world.expect}; nodes {', '.join(run.world.nodes)}, about {', '.join(run.world.asked)}"]
    happened = [(seen.at, seen.text(run.began)) for seen in run.seen]
    happened += [(at, f"{at - run.began:7.3f} {stream}: {text}") for at, stream, text in run.lines]
    lines += [text[:600] for _, text in sorted(happened)]
    lines.append(f"{run.ended - run.began:7.3f} exit code {run.code}, {run.memory // 1048576} MiB")
    return "\n".join(lines + [f"seed {run.world.seed} ({run.world.theme}): {verdict}" for verdict in found])


@dataclasses.dataclass
class Result:
    theme: str
    seed: int
    found: list
    requests: int
    faults: int
    code: int


class Share:
    """Plays the worlds of one process."""

    def __init__(self, binary):
        self.binary, self.lateness, self.results = binary, Lateness(), []
        self.again = []  # worlds to repeat: a promise was broken while the machine was overloaded, which may be the cause

    async def play_all(self, chosen):
        watching = asyncio.create_task(self.lateness.watch())
        await self.play_some(chosen, TOGETHER)
        again, self.again = self.again, None
        await self.play_some(again, 8)
        watching.cancel()
        return self.results

    async def play_some(self, chosen, together):
        places = asyncio.Semaphore(together)
        tasks = []
        for theme, seed in chosen:
            await places.acquire()
            while self.lateness.last > 0.5:
                await asyncio.sleep(0.1)
            tasks.append(asyncio.create_task(self.play_one(theme, seed)))
            tasks[-1].add_done_callback(lambda _: places.release())
            await asyncio.sleep(0.02)  # so that they do not all start at once
        await asyncio.gather(*tasks)

    async def play_one(self, theme, seed):
        run, found = await play(theme, seed, self.binary, self.lateness)
        if found and self.again is not None and run.busy > 1:
            self.again.append((theme, seed))
            return
        self.results.append(Result(theme, seed, found, len(run.seen), sum(bool(s.fault) for s in run.seen), run.code))
        if found:
            print("\n".join(f"seed {seed} ({theme}): {verdict}" for verdict in found), flush=True)
            (TRACES / f"{theme}-{seed}.txt").write_text(trace(run, found) + "\n", encoding="utf-8")


def share(chosen, binary):
    return asyncio.run(Share(binary).play_all(chosen))


def run_many(chosen, binary, jobs):
    began = time.monotonic()
    TRACES.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        parts = list(pool.map(share, [chosen[i::jobs] for i in range(jobs)], [binary] * jobs))
    results = [result for part in parts for result in part]
    bad = sorted((result.theme, result.seed) for result in results if result.found)
    codes = collections.Counter(result.code for result in results)
    print(f"{len(results)} hostile worlds in {time.monotonic() - began:.0f} s: {sum(r.requests for r in results)} requests, "
          f"{sum(r.faults for r in results)} faults; exit codes "
          f"{', '.join(f'{code}: {count}' for code, count in sorted(codes.items()))}; {len(bad)} broke a promise")
    if bad:
        print(f"traces are in {TRACES.relative_to(ROOT)}; replay one with ./dev hostile --theme T --seed K: "
              + ", ".join(f"{theme} {seed}" for theme, seed in bad))
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(description="the real program against hostile API servers on loopback")
    parser.add_argument("--seeds", type=int, default=0, metavar="N")
    parser.add_argument("--first", type=int, default=1, metavar="K")
    parser.add_argument("--seed", type=int, metavar="K")
    parser.add_argument("--always", action="store_true")
    parser.add_argument("--theme", choices=[theme.__name__ for theme in worlds.THEMES], metavar="NAME")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "build/release/cli/haulout")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    binary = asked.binary.resolve()
    if asked.seed is not None:
        theme = asked.theme or worlds.theme_of(asked.seed)
        run, found = asyncio.run(play(theme, asked.seed, binary, Lateness()))
        print(trace(run, found))
        return 1 if found else 0
    chosen = list(ALWAYS) if asked.seeds or asked.always else []
    chosen += [(worlds.theme_of(seed), seed) for seed in range(asked.first, asked.first + asked.seeds)]
    chosen = [world for world in dict.fromkeys(chosen) if asked.theme in (None, world[0])]
    if not chosen:
        parser.error("say --seeds N, --seed K or --always")
    return run_many(chosen, binary, min(asked.jobs, len(chosen)))


if __name__ == "__main__":
    sys.exit(main())
