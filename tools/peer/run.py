"""Runs the two programs and reads their output."""
import json
import math
import os

from .process import Failure, run


def read_results(command, finished):
    """Returns the objects that the command printed."""
    try:
        results = json.loads(finished.text)
    except (ValueError, RecursionError):
        results = None
    if not isinstance(results, list) or not all(isinstance(one, dict) for one in results):
        raise Failure(f"{' '.join(command)} printed no list of results in JSON")
    return results


def usable(command, name, value, zero=False):
    """Returns the value as a number. It must be positive, or 0 if `zero` is true."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            value = float(value)
        except OverflowError:  # more digits than a float can hold
            value = math.inf
        if math.isfinite(value) and (value > 0 or (zero and value == 0)):
            return value
    raise Failure(f"{' '.join(command)} printed a result without a usable {name}")


def number(command, result, key, zero=False):
    return usable(command, key, result.get(key), zero)


def numbers(command, result, key):
    """Returns a list of at least one positive number."""
    values = result.get(key)
    if not isinstance(values, list) or not values:
        raise Failure(f"{' '.join(command)} printed a result without {key}")
    return [usable(command, key, value) for value in values]


def speed(command, result):
    tokens = number(command, result, "n_prompt", True) + number(command, result, "n_gen", True)
    return usable(command, "speed", 1e9 * tokens / numbers(command, result, "samples_ns")[0])


def attention_kind(command, result):
    value = result.get("flash_attn", 0)
    if not isinstance(value, int):  # a bool is an int, too
        raise Failure(f"{' '.join(command)} printed a result without a usable flash_attn")
    return str(int(value))


class Bandwidth:
    """The GB/s that decoding reads, by repetition; the machine's limit; and the share of it."""

    def __init__(self, command, result):
        per_token = number(command, result, "bytes_per_token")
        self.used = [usable(command, "bandwidth", 1e-9 * ts * per_token)
                     for ts in numbers(command, result, "samples_ts")]
        limit = number(command, result, "machine_read_bytes_per_second")
        self.limit = usable(command, "bandwidth", 1e-9 * limit)
        self.share = number(command, result, "machine_read_share")


class Trine:
    def __init__(self, program, limit):
        self.program, self.limit = program, limit

    def version(self):
        return run([self.program, "--version"], self.limit).text.strip()

    def make_model(self, model, path):
        # Make it under another name first, so that a file at `path` is always complete.
        unfinished = path + ".part"
        run([self.program, "make-model", "--like", model.shape, "--type", model.type, unfinished],
            self.limit)
        os.replace(unfinished, path)

    def bench(self, path, work, options):
        """Runs one process. Returns its command, its one result and its peak memory."""
        command = [self.program, "bench", "-m", path, "-p", str(work.n_prompt), "-n",
                   str(work.n_gen), "-d", str(work.depth), "-t", str(work.threads), "-o", "json",
                   *options]
        finished = run(command, self.limit)
        results = read_results(command, finished)
        if len(results) != 1:
            raise Failure(f"{' '.join(command)} printed {len(results)} results, not 1")
        return command, results[0], finished.peak_mib

    def speed_once(self, path, work):
        """Returns the result, its speed and the peak memory."""
        command, result, peak = self.bench(path, work, ("-r", "1", "--no-bandwidth"))
        return result, speed(command, result), peak

    def bandwidth(self, path, work, repetitions):
        command, result, _ = self.bench(path, work, ("-r", str(repetitions)))
        return Bandwidth(command, result)

    def first_token(self, path, work):
        # In the shipped model's vocabulary each word is one token.
        prompt = " ".join(["time"] * work.n_prompt)
        command = [self.program, "generate", "-m", path, "-p", prompt, "-n", "1", "--temp", "0",
                   "-t", str(work.threads)]
        return 1000 * run(command, self.limit).seconds


class Peer:
    """A program with llama-bench's options and JSON. Each way to run it is a competitor of its own:
    the best counts."""

    def __init__(self, name, command, limit):
        self.name, self.command, self.limit = name, command, limit

    def arguments(self, path, work, attention):
        return [*self.command, "-m", path, "-p", str(work.n_prompt), "-n", str(work.n_gen), "-d",
                str(work.depth), "-t", str(work.threads), "-r", "1", "-fa", attention, "-o", "json"]

    def speeds_once(self, path, work):
        """Returns the speeds by attention kind, and the peak memory."""
        command = self.arguments(path, work, "0,1")
        finished = run(command, self.limit)
        speeds = {}
        for result in read_results(command, finished):
            kind = attention_kind(command, result)
            speeds[kind] = max(speeds.get(kind, 0), speed(command, result))
        if not speeds:
            raise Failure(f"{' '.join(command)} printed no results")
        return speeds, finished.peak_mib

    def first_token(self, path, work):
        command = [*self.arguments(path, work, "0"), "--no-warmup"]
        return 1000 * run(command, self.limit).seconds
