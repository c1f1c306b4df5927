"""Finds fused multiplications and additions: exact arithmetic has none.

PTX names them. AMD's code has to be disassembled. It has some that the compiler adds itself and
that change no result: integers are divided with a float reciprocal, whose error a fused operation
measures and integer arithmetic then corrects.
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
# 2^32 and its negative, from the division of 64-bit integers in two halves.
HALVES = re.compile(r"0x[4c]f800000\b")
REGISTER = re.compile(r"[vs]\d+")
LABEL = re.compile(r"^[0-9a-f]+ <([^>]+)>:")


class NoDisassembler(Exception):
    """Raised when no program on this machine can disassemble the code."""


def in_ptx(text):
    """Returns the fused instructions of PTX as (kernel, instruction)."""
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
    """Returns the same for an AMD code object, from the output of llvm-objdump."""
    found, kernel, truncated = [], "?", set()
    for line in text.splitlines():
        label = LABEL.match(line)
        if label:
            # Labels inside a kernel begin with .L or L.
            if not label.group(1).startswith((".L", "L")):
                kernel = label.group(1)
            truncated = set()
            continue
        # Two instructions that are issued together are in one line.
        for instruction in line.split("//")[0].split("::"):
            words = instruction.split(None, 1)
            if len(words) != 2:
                continue
            name, operands = words
            registers = REGISTER.findall(operands)
            if AMD.match(name) and not HALVES.search(operands) and not truncated & set(registers):
                found.append((kernel, name))
            if registers:
                # A quotient of small integers is truncated before its error is measured. For a
                # scalar operand, an instruction of its own changes the sign.
                if name.startswith(("v_trunc_f32", "s_trunc_f32")) or (
                        name == "s_xor_b32" and registers[-1] in truncated and
                        operands.rstrip().endswith("0x80000000")):
                    truncated.add(registers[0])
                else:
                    truncated.discard(registers[0])
    return found


def bodies(text):
    """Returns the instruction names of each kernel, without the padding between kernels."""
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
    """Returns the newest llvm-objdump: each reads what older ones read. None if there is none."""
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
