"""A fake trine or llama-bench: prints the JSON of a run with a given speed.

    fake_bench.py SETTINGS ARGUMENT...

SETTINGS is JSON: "speed" (tokens per second, by attention kind for a peer), "share" of the read
bandwidth, "sleep" seconds, "asleep" (a file that gets the process id then), "sleep_threads" (a peer
sleeps only with so many threads), "stubborn" (ignores SIGTERM), "tidy" (make-model sleeps too, and
removes its file at SIGTERM), "fail", "log" (a file to which every call is appended), "text"
(printed in place of results), "name".
"""
import json
import os
import signal
import sys
import time


def option(words, name, default="0"):
    return words[words.index(name) + 1] if name in words else default


def result(words, speed, extra):
    n_prompt, n_gen = int(option(words, "-p")), int(option(words, "-n"))
    samples = [1e9 * (n_prompt + n_gen) / speed] * int(option(words, "-r", "1"))
    return {"n_prompt": n_prompt, "n_gen": n_gen, "n_threads": int(option(words, "-t")),
            "samples_ns": samples, "samples_ts": [speed] * len(samples), **extra}


def sleep(settings):
    if "asleep" in settings:
        unfinished = settings["asleep"] + ".part"
        with open(unfinished, "w", encoding="utf-8") as file:
            file.write(str(os.getpid()))
        os.replace(unfinished, settings["asleep"])
    time.sleep(settings.get("sleep", 0))


def make_model(settings, path):
    open(path, "w", encoding="utf-8").close()
    if not settings.get("tidy"):
        return

    def tidy(*_):
        time.sleep(0.5)
        os.remove(path)
        sys.exit(130)

    signal.signal(signal.SIGTERM, tidy)
    sleep(settings)


def main():
    settings, words = json.loads(sys.argv[1]), sys.argv[2:]
    if "log" in settings:
        with open(settings["log"], "a", encoding="utf-8") as log:
            log.write(settings["name"] + " " + " ".join(words) + "\n")
    if settings.get("stubborn"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if settings.get("fail"):
        print("out of luck", file=sys.stderr)
        return 3
    if words[0] == "--version":
        print("trine 0.0.0")
    elif words[0] == "make-model":
        make_model(settings, words[-1])
    elif words[0] == "generate":
        sleep(settings)
        print("once")
    elif settings.get("text"):
        print(settings["text"])
    elif words[0] == "bench":
        share = settings.get("share", 0.5)
        print(json.dumps([result(words, settings["speed"], {
            "bytes_per_token": 1e9, "machine_read_bytes_per_second": 1e9 * settings["speed"] / share,
            "machine_read_share": share})]))
    else:
        if settings.get("sleep_threads", option(words, "-t")) == option(words, "-t"):
            sleep(settings)
        kinds = option(words, "-fa").split(",")
        print(json.dumps([result(words, settings["speed"][kind], {"flash_attn": kind == "1"})
                          for kind in kinds]))
    return 0


sys.exit(main())
