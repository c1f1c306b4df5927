"""Multiplications and additions that were fused: exact arithmetic has none.

In PTX that is seen plainly. AMD's code has to be disassembled, and has some that are the compiler's
own, of no effect on a result: integers are divided by way of a float reciprocal, whose error a
fused operation measures and integer arithmetic then corrects.
"""
import re
import shutil
import subprocess
import tempfile

PTX = re.compile(r"\b(?:fma|mad)\.(?:\w+\.)*(?:f16|f16x2|bf16|bf16x2|f32|f64)\b")

FLOATS = r"(?:f16|bf16|f32|f64|xf32)"
AMD = re.compile(
    rf"[vs]_(?:dual_)?(?:pk_)?(?:fma|fmac|fmaak|fmamk|mad|mac|madak|madmk)"
    rf"(?:_mix|_mixlo|_mixhi|_legacy|_dx9_zero)*_{FLOATS}"
    rf"|v_dot2c?_(?:f32|f16|bf16)_|v_(?:s?mfma|s?wmma)_{FLOATS}_|v_div_fmas_")
# 2^32 and its negative: 64 bits are divided as two halves.
HALVES = re.compile(r"0x[4c]f800000\b")
REGISTER = re.compile(r"[vs]\d+")
LABEL = re.compile(r"^[0-9a-f]+ <([^>]+)>:")


class NoDisassembler(Exception):
    """Nothing here can read the code."""


def in_ptx(text):
    """The fused instructions of PTX, each with the kernel it is in."""
    found, kernel = [], "?"
    for line in text.splitlines():
        entry = re.search(r"\.(?:entry|func)\b.*?([\w$]+)\s*\(", line)
        if entry:
            kernel = entry.group(1)
        match = PTX.search(line)
        if match:
            found.append((kernel, match.group(0)))
    return found


def in_disassembly(text):
    """Likewise, of what llvm-objdump prints of an AMD code object."""
    found, kernel, truncated = [], "?", set()
    for line in text.splitlines():
        label = LABEL.match(line)
        if label:
            # Labels inside a kernel, where there are any, begin with a dot or an L.
            if not label.group(1).startswith((".L", "L")):
                kernel = label.group(1)
            truncated = set()
            continue
        # Two that are issued together stand in one line.
        for instruction in line.split("//")[0].split("::"):
            words = instruction.split(None, 1)
            if len(words) != 2:
                continue
            name, operands = words
            registers = REGISTER.findall(operands)
            if AMD.match(name) and not HALVES.search(operands) and not truncated & set(registers):
                found.append((kernel, name))
            if registers:
                # A quotient of small integers is cut off before its error is measured; where a
                # scalar takes part in that, its sign is changed by an instruction of its own.
                if name.startswith(("v_trunc_f32", "s_trunc_f32")) or (
                        name == "s_xor_b32" and registers[-1] in truncated and
                        operands.rstrip().endswith("0x80000000")):
                    truncated.add(registers[0])
                else:
                    truncated.discard(registers[0])
    return found


def bodies(text):
    """The names of the instructions of each kernel, fillings between kernels left out."""
    found, body = {}, []
    for line in text.splitlines():
        label = LABEL.match(line)
        if label:
            if not label.group(1).startswith((".L", "L")):
                body = found.setdefault(label.group(1), [])
            continue
        name = line.split("//")[0].split(None, 1)
        if name and name[0] not in ("s_nop", "s_code_end"):
            body.append(name[0])
    return found


def find_objdump():
    """The newest one: each reads what those before it do."""
    names = [f"llvm-objdump-{version}" for version in range(29, 14, -1)]
    return next(filter(None, map(shutil.which, [*names, "/opt/rocm/llvm/bin/llvm-objdump",
                                                "llvm-objdump"])), None)


def disassemble(image, objdump):
    if not objdump or not shutil.which(objdump):
        raise NoDisassembler("not disassembled, as there is no llvm-objdump")
    with tempfile.NamedTemporaryFile(suffix=".co") as file:
        file.write(image)
        file.flush()
        done = subprocess.run([objdump, "-d", file.name], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise NoDisassembler(f"not disassembled, as {objdump} does not know it")
    return done.stdout
