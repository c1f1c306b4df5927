"""Tests the rows, numbers and verdicts of tools/bench_peer with fake programs.

    peer_test.py SOURCE_DIR
"""
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.dont_write_bytecode = True
SOURCE = sys.argv.pop(1)
BENCH_PEER = os.path.join(SOURCE, "tools", "bench_peer")
FAKE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "fake_bench.py")


class PeerTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.log = self.path("log")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def fake(self, name, **settings):
        """Makes a program that runs fake_bench.py with the settings."""
        settings.update(name=name, log=self.log)
        words = [sys.executable, FAKE, json.dumps(settings)]
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\nexec " + " ".join(map(shlex.quote, words)) + ' "$@"\n')
        os.chmod(self.path(name), 0o755)
        return self.path(name)

    def run_peer(self, *arguments, env=None):
        return subprocess.run([sys.executable, BENCH_PEER, "--work", self.path("work"), *arguments],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env,
                              check=False)

    def compare(self, ours, theirs, *arguments, share=0.5):
        trine = self.fake("trine", speed=ours, share=share)
        peer = self.fake("peer", speed={"0": theirs, "1": theirs / 2})
        return self.run_peer("--trine", trine, "--peer", peer, *arguments)

    def row(self, done, name):
        for line in done.stdout.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if cells[0] == name:
                return cells
        self.fail(f"no row {name} in:\n{done.stdout}\n{done.stderr}")

    def test_bars_held(self):
        done = self.compare(400, 100, "--only", "decode|prefill", "--threads", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.row(done, "decode tales-27m"),
                         ["decode tales-27m", "2", "400.0 (400.0-400.0) t/s",
                          "100.0 (100.0-100.0) t/s", "4.00 (4.00-4.00)", ">= 3", "pass"])
        self.assertEqual(self.row(done, "decode qwen2.5-0.5b Q4_0")[5:], [">= 1.25", "pass"])
        self.assertEqual(self.row(done, "prefill 128 qwen2.5-0.5b Q4_0")[5:], [">= 2", "pass"])
        self.assertIn("3 of 3 bars held", done.stdout)

    def test_a_bar_missed_is_exit_1(self):
        done = self.compare(299, 100, "--only", "decode|prefill", "--threads", "2")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(self.row(done, "decode tales-27m")[4:],
                         ["2.99 (2.99-2.99)", ">= 3", "FAIL"])
        self.assertEqual(self.row(done, "prefill 128 qwen2.5-0.5b Q4_0")[6], "pass")
        self.assertIn("2 of 3 bars held", done.stdout)

    def test_the_better_attention_of_the_better_peer_counts(self):
        trine = self.fake("trine", speed=400)
        slow = self.fake("slow", speed={"0": 10, "1": 20})
        fast = self.fake("fast", speed={"0": 30, "1": 80})
        done = self.run_peer("--trine", trine, "--peer", slow, "--peer", fast, "--only",
                             "decode tales", "--threads", "1")
        self.assertEqual(self.row(done, "decode tales-27m")[4], "5.00 (5.00-5.00)")

    def test_takes_turns(self):
        self.compare(400, 100, "--only", "decode tales", "--threads", "1", "--reps", "2")
        with open(self.log, encoding="utf-8") as file:
            calls = [line.split()[0] for line in file if "--version" not in line]
        self.assertEqual(calls, ["trine", "peer", "trine", "peer"])

    def test_quick_is_short(self):
        self.compare(400, 100, "--threads", "1,2")
        with open(self.log, encoding="utf-8") as file:
            calls = [line.split() for line in file if "--version" not in line]
        # A model is made; four rows have processes of their own, each in three turns.
        self.assertEqual(len(calls), 1 + 4 * 3 * 2)
        lengths = [(int(words[words.index("-p") + 1]), int(words[words.index("-n") + 1]))
                   for words in calls if words[0] == "peer"]
        self.assertEqual(sorted(set(lengths)), [(0, 32), (0, 64), (32, 0), (128, 0)])
        self.assertTrue(all(words[words.index("-t") + 1] == "2"
                            for words in calls if words[0] == "peer"))

    def test_all_rows_have_their_bars(self):
        done = self.compare(200, 100, "--all", "--threads", "1,2", "--reps", "1", share=0.85)
        bars = {}
        for line in done.stdout.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if len(cells) == 7 and cells[6] in ("pass", "FAIL"):
                bars.setdefault(cells[0], []).append((cells[1], cells[5], cells[6]))

        def both(bar, verdict):
            return [("1", bar, verdict), ("2", bar, verdict)]

        self.assertEqual(bars["decode tales-27m"], both(">= 3", "FAIL"))
        for shape in ("qwen2.5-0.5b", "llama-3.2-1b"):
            self.assertEqual(bars[f"decode {shape} Q4_0"], both(">= 1.25", "pass"))
            self.assertEqual(bars[f"decode {shape} Q4_K_M"], both(">= 1.5", "pass"))
            self.assertEqual(bars[f"decode {shape} F16"], both(">= 0.98", "pass"))
            self.assertEqual(bars[f"decode {shape} Q8_0"], both(">= 1.05 or 90% of limit", "pass"))
            for kind in ("Q4_0", "Q8_0", "Q4_K_M"):
                self.assertEqual(bars[f"prefill 512 {shape} {kind}"], both(">= 2", "pass"))
                self.assertEqual(bars[f"peak memory {shape} {kind}"][0][1], "<= 1.05")
        self.assertEqual(bars["decode llama-3.2-1b Q4_0 @ 4096"], [("2", ">= 1.25", "pass")])
        self.assertEqual(bars["read bandwidth llama-3.2-1b Q8_0"], both(">= 88%", "FAIL"))
        self.assertEqual(bars["read bandwidth llama-3.2-1b Q4_0"], both(">= 80%", "pass"))
        self.assertEqual(bars["read bandwidth llama-3.2-1b Q4_K_M"], both(">= 80%", "pass"))
        self.assertEqual(bars["first token tales-27m"][0][1], ">= 1")
        self.assertEqual(done.returncode, 1)

    def test_enough_bandwidth_stands_in_for_q8_0(self):
        only = ("--all", "--only", "decode qwen.*Q8_0 t1$", "--reps", "1")
        self.assertEqual(self.compare(100, 100, *only, share=0.89).returncode, 1)
        done = self.compare(100, 100, *only, share=0.91)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("91% of limit", self.row(done, "decode qwen2.5-0.5b Q8_0")[4])

    def test_a_sooner_first_token_is_better(self):
        trine = self.fake("trine", speed=1, sleep=0)
        peer = self.fake("peer", speed={"0": 1, "1": 1}, sleep=1)
        only = ("--only", "first token", "--reps", "1")
        self.assertEqual(self.run_peer("--trine", trine, "--peer", peer, *only).returncode, 0)
        trine = self.fake("trine", speed=1, sleep=1)
        peer = self.fake("peer", speed={"0": 1, "1": 1}, sleep=0)
        self.assertEqual(self.run_peer("--trine", trine, "--peer", peer, *only).returncode, 1)

    def test_keeps_models_and_writes_samples(self):
        out = self.path("out.json")
        for _ in range(2):
            self.compare(400, 100, "--only", "decode", "--threads", "1", "--json", out)
        with open(self.log, encoding="utf-8") as file:
            self.assertEqual(len(re.findall(" make-model ", file.read())), 1)
        with open(out, encoding="utf-8") as file:
            results = json.load(file)
        self.assertEqual([row["work"] for row in results["rows"]],
                         ["decode tales-27m", "decode qwen2.5-0.5b Q4_0"])
        self.assertEqual(results["rows"][0]["ours"], [400.0] * 3)
        self.assertTrue(results["rows"][0]["passed"])

    def expect_one_sentence(self, done, part, code=2):
        self.assertEqual(done.returncode, code, done.stderr)
        said = [line for line in done.stderr.splitlines()
                if not re.search(r": \d+ of \d+: |is busy", line)]
        self.assertEqual(len(said), 1, done.stderr)
        self.assertIn(part, said[0])

    def test_failures_are_one_sentence(self):
        trine = self.fake("trine", speed=1)
        tell = ("--only", "decode tales", "--trine", trine)
        self.expect_one_sentence(self.run_peer(*tell, "--peer", "/no/such/bench"), "can't be run")
        self.expect_one_sentence(self.run_peer(*tell, "--peer", trine, "--peer", self.path("work")),
                                 "can't be run")
        broken = self.fake("broken", fail=True)
        self.expect_one_sentence(self.run_peer(*tell, "--peer", broken),
                                 "failed with exit code 3: out of luck")
        silent = self.fake("silent", text="hello")
        self.expect_one_sentence(self.run_peer(*tell, "--peer", silent), "printed no list of results")
        empty = self.fake("empty", text="[]")
        self.expect_one_sentence(self.run_peer(*tell, "--peer", empty), "printed no results")
        slow = self.fake("slow", speed={"0": 1, "1": 1}, sleep=30)
        self.expect_one_sentence(self.run_peer(*tell, "--peer", slow, "--limit", "5"),
                                 "took more than 5 seconds")
        self.expect_one_sentence(self.run_peer("--only", "nothing", "--peer", trine),
                                 "no row has such a name")

    def test_files_are_looked_at_before_anything_is_measured(self):
        trine, marked = self.path("trine"), self.path("measured")
        with open(trine, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n: > {marked}\nexit 1\n")
        os.chmod(trine, 0o755)
        for arguments, part in [
                (("--json", "/no/such/folder/out.json"), "--json: /no/such/folder/out.json: No such"),
                (("--json", self.path("")), "--json: "),
                (("--work", trine), "--work: "),
                (("--peer", "/no/such/bench"), "/no/such/bench can't be run"),
                (("--trine", "/no/such/trine"), "/no/such/trine can't be run")]:
            done = self.run_peer("--only", "decode tales", "--trine", trine, "--peer", trine,
                                 *arguments)
            self.expect_one_sentence(done, part)
            self.assertNotIn("1 of 1", done.stderr)
            self.assertFalse(os.path.exists(marked), arguments)

    GARBAGE = [
        ("[1]", "no list of results"),
        ("null", "no list of results"),
        ("{}", "no list of results"),
        ("[" * 100000, "no list of results"),
        ("[{}]", "without a usable n_prompt"),
        ('[{"n_prompt": null, "n_gen": 4, "samples_ns": [1]}]', "without a usable n_prompt"),
        ('[{"n_prompt": 0, "n_gen": "4", "samples_ns": [1]}]', "without a usable n_gen"),
        ('[{"n_prompt": 0, "n_gen": true, "samples_ns": [1]}]', "without a usable n_gen"),
        ('[{"n_prompt": 0, "n_gen": 4}]', "without samples_ns"),
        ('[{"n_prompt": 0, "n_gen": 4, "samples_ns": []}]', "without samples_ns"),
        ('[{"n_prompt": 0, "n_gen": 4, "samples_ns": 5}]', "without samples_ns"),
        ('[{"n_prompt": 0, "n_gen": 4, "samples_ns": [null]}]', "without a usable samples_ns"),
        ('[{"n_prompt": 0, "n_gen": 4, "samples_ns": [0]}]', "without a usable samples_ns"),
        ('[{"n_prompt": 0, "n_gen": 4, "samples_ns": [-3]}]', "without a usable samples_ns"),
        ('[{"n_prompt": 0, "n_gen": 4, "samples_ns": [NaN]}]', "without a usable samples_ns"),
        ('[{"n_prompt": 0, "n_gen": 4, "samples_ns": [1' + "0" * 400 + "]}]",
         "without a usable samples_ns"),
        ('[{"n_prompt": 0, "n_gen": 4, "samples_ns": [1e-305]}]', "without a usable speed"),
        ('[{"n_prompt": 0, "n_gen": 0, "samples_ns": [5]}]', "without a usable speed"),
    ]

    def test_garbage_is_one_sentence(self):
        tell = ("--only", "decode tales", "--threads", "1", "--reps", "1")
        trine, peer = self.fake("trine", speed=1), self.fake("peer", speed={"0": 1, "1": 1})
        kind = ('[{"n_prompt": 0, "n_gen": 4, "samples_ns": [1], "flash_attn": "on"}]',
                "without a usable flash_attn")
        for text, part in self.GARBAGE + [kind]:
            odd = self.fake("odd", text=text)
            done = self.run_peer(*tell, "--trine", trine, "--peer", odd)
            self.expect_one_sentence(done, part)
        for text, part in self.GARBAGE + [("[]", "printed 0 results, not 1")]:
            odd = self.fake("odd", text=text)
            done = self.run_peer(*tell, "--trine", odd, "--peer", peer)
            self.expect_one_sentence(done, part)

    def test_garbage_for_a_bandwidth_is_one_sentence(self):
        good = {"bytes_per_token": 1, "samples_ts": [1], "machine_read_bytes_per_second": 1,
                "machine_read_share": 0.5}
        peer = self.fake("peer", speed={"0": 1, "1": 1})
        for key in good:
            for value in (None, "1", 0, []):
                # Make the model's file before, so that only the row is printed.
                os.makedirs(self.path("work"), exist_ok=True)
                open(self.path("work/llama-3.2-1b-Q8_0.gguf"), "w", encoding="utf-8").close()
                odd = self.fake("odd", text=json.dumps([{**good, key: value}]))
                done = self.run_peer("--all", "--only", "read bandwidth.*Q8_0 t1", "--trine", odd,
                                     "--peer", peer)
                self.expect_one_sentence(done, key)

    def test_another_version_of_the_package_is_installed(self):
        trine = self.fake("trine", speed=400)
        self.fake("npm", speed={"0": 1})
        self.fake("node", speed={"0": 100, "1": 100})
        env = dict(os.environ, PATH=self.folder.name + ":" + os.environ["PATH"])

        def installs():
            done = self.run_peer("--only", "decode tales", "--reps", "1", "--trine", trine, env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(self.log, encoding="utf-8") as file:
                return len(re.findall("^npm install ", file.read(), re.MULTILINE))

        self.assertEqual(installs(), 1)
        self.assertEqual(installs(), 1)
        stamp = self.path("work/node/.installed")
        for other in ("node-llama-cpp@3.0.0\n", ""):
            with open(stamp, "w", encoding="utf-8") as file:
                file.write(other)
            before = installs()
            self.assertEqual(installs(), before)
        self.assertEqual(before, 3)
        self.fake("npm", fail=True)
        with open(stamp, "w", encoding="utf-8") as file:
            file.write("node-llama-cpp@3.0.0\n")
        done = self.run_peer("--only", "decode tales", "--trine", trine, env=env)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertFalse(os.path.exists(stamp))

    def test_without_npm(self):
        env = dict(os.environ, PATH=self.path("nowhere"))
        trine = self.fake("trine", speed=1)
        done = self.run_peer("--only", "decode tales", "--trine", trine, env=env)
        self.assertEqual(done.returncode, 2)
        self.assertIn("there is no npm", done.stderr.splitlines()[-1])

    def interrupt(self, number, trine, peer, only, ignored=(), more=(), reader=True):
        """Returns the output, if `reader`, when the signal comes while one of the programs
        sleeps."""
        def ignore():
            for one in ignored:
                signal.signal(one, signal.SIG_IGN)

        words = [sys.executable, BENCH_PEER, "--work", self.path("work"), "--trine", trine,
                 "--peer", peer, "--only", only, *more]
        with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              preexec_fn=ignore) as process:
            try:
                self.wait_for(self.path("asleep"))
                if not reader:
                    process.stdout.close()
                    process.stdout = None
                process.send_signal(number)
                printed, said = process.communicate(timeout=20)
            finally:
                process.kill()
        self.assertEqual(process.returncode, 130, said)
        self.assertIn("interrupted", said)
        self.assertNotIn("Traceback", said)
        return printed

    def wait_for(self, path):
        deadline = time.monotonic() + 20
        while not os.path.exists(path):
            self.assertLess(time.monotonic(), deadline, f"no {path}")
            time.sleep(0.02)

    def sleeper(self, **settings):
        return self.fake("peer", speed={"0": 1, "1": 1}, sleep=60, asleep=self.path("asleep"),
                         **settings)

    def test_interrupted(self):
        trine = self.fake("trine", speed=1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            printed = self.interrupt(number, trine, self.sleeper(), "decode tales")
            self.assertEqual(printed, "")
            os.remove(self.path("asleep"))

    def test_interrupted_after_a_row(self):
        peer = self.sleeper(sleep_threads="2")
        more = ("--all", "--threads", "1,2", "--reps", "1")
        printed = self.interrupt(signal.SIGINT, self.fake("trine", speed=4), peer,
                                 "decode tales", more=more)
        rows = [line for line in printed.splitlines() if line.startswith("| decode tales-27m")]
        self.assertEqual(len(rows), 1, printed)
        self.assertIn("4.00", rows[0])
        self.assertIn("1 of 1 bars held", printed)
        os.remove(self.path("asleep"))
        self.interrupt(signal.SIGINT, self.path("trine"), peer, "decode tales", more=more,
                       reader=False)

    def test_rows_before_a_failure_are_printed(self):
        done = self.run_peer("--trine", self.fake("trine", speed=4), "--peer",
                             self.sleeper(sleep_threads="2"), "--only", "decode tales", "--all",
                             "--threads", "1,2", "--reps", "1", "--limit", "3")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("1 of 1 bars held", done.stdout)

    def test_interrupted_where_interrupts_are_ignored(self):
        trine = self.fake("trine", speed=1)
        self.interrupt(signal.SIGTERM, trine, self.sleeper(), "decode tales",
                       ignored=(signal.SIGINT, signal.SIGHUP))

    def test_an_interrupted_child_removes_its_files(self):
        trine = self.fake("trine", speed=1, sleep=60, asleep=self.path("asleep"), tidy=True)
        self.interrupt(signal.SIGTERM, trine, self.fake("peer", speed={"0": 1, "1": 1}),
                       "decode qwen")
        self.assertEqual(os.listdir(self.path("work")), [])

    def test_the_limit_ends_what_a_wrapper_started(self):
        trine = self.fake("trine", speed=1)
        peer = self.sleeper()
        wrapper = self.path("wrapper")
        with open(wrapper, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\n{shlex.quote(peer)} "$@"\nexit $?\n')
        os.chmod(wrapper, 0o755)
        begin = time.monotonic()
        done = self.run_peer("--trine", trine, "--peer", wrapper, "--only", "decode tales",
                             "--limit", "3")
        self.expect_one_sentence(done, "took more than 3 seconds")
        self.assertLess(time.monotonic() - begin, 30)
        with open(self.path("asleep"), encoding="utf-8") as file:
            with self.assertRaises(ProcessLookupError):
                os.kill(int(file.read()), 0)

    def test_a_child_that_stays_is_killed(self):
        trine = self.fake("trine", speed=1)
        done = self.run_peer("--trine", trine, "--peer", self.sleeper(stubborn=True), "--only",
                             "decode tales", "--limit", "3")
        self.expect_one_sentence(done, "took more than 3 seconds")

    def test_wrong_arguments(self):
        for words in (["--threads", "0"], ["--reps", "x"], ["--only", "("], ["--nope"],
                      ["--quick", "--all"]):
            done = self.run_peer(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertNotIn("Traceback", done.stderr)
        self.assertEqual(self.run_peer("--help").returncode, 0)


if __name__ == "__main__":
    unittest.main()
