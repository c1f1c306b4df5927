"""Compares servers under load, in turns: tokens per second, and the wait for the first token."""
import json
import os
import socket
import statistics
import tempfile
import time
import urllib.error
import urllib.request

from .process import Failure, end, last_line, run, start

SLOTS = 16
CONTEXT = 512  # of each slot
LOAD_SECONDS = 15
READY_SECONDS = 120
PEER_BAR, BATCH_BAR, FIRST_TOKEN_BAR = 1.3, 2.0, 5.0


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A server that runs inside a `with` block."""

    def __init__(self, name, command):
        self.name, self.command = name, command

    def __enter__(self):
        self.port = free_port()
        self.log = tempfile.TemporaryFile()
        command = [*self.command, "--host", "127.0.0.1", "--port", str(self.port)]
        self.process = start(command, self.log, self.log)
        try:
            self.wait_until_ready()
        except BaseException:
            end(self.process)
            raise
        return self

    def __exit__(self, *_):
        end(self.process)
        self.log.close()

    def wait_until_ready(self):
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                said = last_line(self.log) or "no reason given"
                raise Failure(f"{self.name} ended at once: {said}")
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2):
                    return
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
        raise Failure(f"{self.name} was not ready within {READY_SECONDS} s")


class Runs:
    """The results of one server with one number of clients, by turn."""

    def __init__(self):
        self.speeds, self.first = [], []

    def add(self, result):
        self.speeds.append(result["tokens_per_second"])
        self.first.append(result["first_token_ms"]["p95"])

    def speed(self):
        return statistics.median(self.speeds)

    def first_p95(self):
        return statistics.median(self.first)


def load(program, port, clients, turn, limit):
    command = [program, "--port", str(port), "--clients", str(clients), "--seconds",
               str(LOAD_SECONDS), "--seed", str(turn + 1)]
    return json.loads(run(command, limit).text)


def compare(trine, peer, model, threads, turns, limit, say):
    """Returns the report's text, and whether all bars were met."""
    loader = os.path.join(os.path.dirname(trine), "trine-server-load")
    servers = [("trine", [trine, "serve", "-m", model, "-np", str(SLOTS), "-c", str(CONTEXT), "-t",
                          str(threads), "--log-level", "warning"])]
    if peer:
        servers.append(("peer", [peer, "-m", model, "-np", str(SLOTS), "-c", str(SLOTS * CONTEXT),
                                 "-t", str(threads)]))
    runs = {(name, clients): Runs() for name, _ in servers for clients in (1, SLOTS)}
    for turn in range(turns):
        for name, command in servers:
            say(f"bench_peer: turn {turn + 1} of {turns}: {name}")
            with Server(name, command) as server:
                load(loader, server.port, 1, 1000 + turn, limit)  # warm-up
                for clients in (1, SLOTS):
                    runs[name, clients].add(load(loader, server.port, clients, turn, limit))
    return report(runs, [name for name, _ in servers])


def report(runs, names):
    lines = ["| server | clients | tokens/s | first token p95 |", "|---|---|---|---|"]
    for name in names:
        for clients in (1, SLOTS):
            r = runs[name, clients]
            lines.append(f"| {name} | {clients} | {r.speed():.0f} ({min(r.speeds):.0f}-"
                         f"{max(r.speeds):.0f}) | {r.first_p95():.0f} ms |")
    many, one = runs["trine", SLOTS], runs["trine", 1]
    verdicts = [(f"{SLOTS} clients against one", many.speed() / one.speed(), BATCH_BAR, True),
                (f"first token p95, {SLOTS} clients against one",
                 many.first_p95() / one.first_p95(), FIRST_TOKEN_BAR, False)]
    if "peer" in names:
        verdicts.append((f"against the peer with {SLOTS} clients",
                         many.speed() / runs["peer", SLOTS].speed(), PEER_BAR, True))
    passed = True
    for what, ratio, bar, at_least in verdicts:
        met = ratio >= bar if at_least else ratio < bar
        passed = passed and met
        lines.append(f"{'ok  ' if met else 'MISS'} {what}: {ratio:.2f}x, "
                     f"{'at least' if at_least else 'less than'} {bar:g}x")
    return "\n".join(lines), passed
