#!/usr/bin/env python3
"""Checks that every kernel of kernels/hip waits for earlier ones.

Kernels may begin before earlier ones have ended (gpuStart). A kernel without AwaitEarlier would be
right nearly always, and wrong on a busy device."""
import pathlib
import re
import sys

WAITS = re.compile(r"\b(AwaitEarlier|BeginAfterEarlier)\(\)")
KERNEL = re.compile(r"TRINE_KERNEL(?:_RESIDENT)?\([^)]*\)\s*(\w+)\(")


def body_of(text, at):
    """Returns the text from the brace behind `at` to the one that closes it."""
    begin = text.index("{", at)
    depth = 0
    for i in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[i], 0)
        if depth == 0:
            return text[begin:i]
    return text[begin:]


def kernels_of(text):
    """Yields (name, whether it waits) for every kernel."""
    code = re.sub(r"//[^\n]*", "", text)
    for kernel in KERNEL.finditer(code):
        yield kernel.group(1), WAITS.search(body_of(code, kernel.end())) is not None


def check_the_check():
    good = "TRINE_KERNEL(kThreads) A(Args args) {\n  if (x) { y(); }\n  AwaitEarlier();\n}\n"
    bad = "TRINE_KERNEL_RESIDENT(256, 2)\nB(Args args) {\n  // AwaitEarlier();\n  y();\n}\n"
    assert list(kernels_of(bad + good)) == [("B", False), ("A", True)]


def main(root):
    check_the_check()
    found, failed = 0, False
    folder = pathlib.Path(root) / "kernels" / "hip"
    # gpu/ holds what kernels are written with, and no kernel.
    paths = [p for p in [*folder.rglob("*.h"), *folder.rglob("*.gpu.cc")] if p.parent.name != "gpu"]
    for path in sorted(paths):
        for name, waits in kernels_of(path.read_text()):
            found += 1
            if not waits:
                print(f"{path}: {name} does not wait for earlier kernels")
                failed = True
    print(f"{found} kernels")
    return 1 if failed or found < 20 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
