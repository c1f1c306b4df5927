"""Runs the two programs, and reads what they print."""
import json
import os

from .process import Failure, run


def read_json(command, finished):
    try:
        results = json.loads(finished.text)
        if not isinstance(results, list):
            raise ValueError
        return results
    except ValueError:
        raise Failure(f"{' '.join(command)} printed no list of JSON") from None


def speed(command, result):
    try:
        return 1e9 * (result["n_prompt"] + result["n_gen"]) / result["samples_ns"][0]
    except (KeyError, IndexError, TypeError, ZeroDivisionError):
        raise Failure(f"{' '.join(command)} printed a result without its samples") from None


class Trine:
    def __init__(self, program, limit):
        self.program, self.limit = program, limit

    def version(self):
        return run([self.program, "--version"], self.limit).text.strip()

    def make_model(self, model, path):
        # Made under another name first: a file that is there is whole.
        unfinished = path + ".part"
        run([self.program, "make-model", "--like", model.shape, "--type", model.type, unfinished],
            self.limit)
        os.replace(unfinished, path)

    def bench(self, path, work, options=()):
        """One process: its result, the first repetition's speed, the peak memory."""
        command = [self.program, "bench", "-m", path, "-p", str(work.n_prompt), "-n",
                   str(work.n_gen), "-d", str(work.depth), "-t", str(work.threads), "-o", "json",
                   *options]
        finished = run(command, self.limit)
        results = read_json(command, finished)
        if len(results) != 1:
            raise Failure(f"{' '.join(command)} printed {len(results)} results, not 1")
        return results[0], speed(command, results[0]), finished.peak_mib

    def speed_once(self, path, work):
        return self.bench(path, work, ("-r", "1", "--no-bandwidth"))

    def first_token(self, path, work):
        # In the shipped model's vocabulary each word is one token.
        prompt = " ".join(["time"] * work.n_prompt)
        command = [self.program, "generate", "-m", path, "-p", prompt, "-n", "1", "--temp", "0",
                   "-t", str(work.threads)]
        return 1000 * run(command, self.limit).seconds


class Peer:
    """Something with llama-bench's options and JSON. Each way to run it is a competitor of its own:
    what counts is the best."""

    def __init__(self, name, command, limit):
        self.name, self.command, self.limit = name, command, limit

    def arguments(self, path, work, attention):
        return [*self.command, "-m", path, "-p", str(work.n_prompt), "-n", str(work.n_gen), "-d",
                str(work.depth), "-t", str(work.threads), "-r", "1", "-fa", attention, "-o", "json"]

    def speeds_once(self, path, work):
        """By attention kind, and the peak memory."""
        command = self.arguments(path, work, "0,1")
        finished = run(command, self.limit)
        speeds = {}
        for result in read_json(command, finished):
            kind = str(int(result.get("flash_attn", 0)))
            speeds[kind] = max(speeds.get(kind, 0), speed(command, result))
        if not speeds:
            raise Failure(f"{' '.join(command)} printed no results")
        return speeds, finished.peak_mib

    def first_token(self, path, work):
        command = [*self.arguments(path, work, "0"), "--no-warmup"]
        return 1000 * run(command, self.limit).seconds
