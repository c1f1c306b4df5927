"""Reads NVIDIA's device code: a fat binary for each source, of cubins (ELF) and PTX (text)."""
import struct

from code_objects.elf import Elf
from code_objects.kernel import Code, Kernel

SECTION = ".nv_fatbin"
MAGIC = struct.pack("<I", 0xBA55ED50)
PTX, CUBIN = 1, 2
COMPRESSED = 0x8000 | 0x2000  # one bit for each of two methods
# Entries of a cubin's .nv.info: a function's number of registers and the size of its stack frame.
WITH_SIZE, REGISTERS, FRAME = 4, 0x2F, 0x11


def bundles(data, name):
    """Returns a list of Code for each source."""
    found, at = [], data.find(MAGIC)
    while at >= 0:
        _, header, size = struct.unpack_from("<HHQ", data, at + 4)
        found.append(list(_entries(data, at + header, at + header + size, name)))
        at = data.find(MAGIC, at + header + size)
    return found


def _entries(data, at, end, name):
    while at < end:
        kind, _, header, size = struct.unpack_from("<HHIQ", data, at)
        number, = struct.unpack_from("<I", data, at + 28)
        flags, = struct.unpack_from("<I", data, at + 40)
        content = data[at + header:at + header + size]
        if kind == CUBIN:
            yield _cubin(content, f"sm_{number}", name)
        elif kind == PTX:
            text = "" if flags & COMPRESSED else content.decode("latin-1")
            yield Code(f"compute_{number}", text=text)
        at += header + size


def _attributes(data):
    """Yields (attribute, symbol, value) for an .nv.info section."""
    at = 0
    while at + 4 <= len(data):
        form, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form != WITH_SIZE:
            continue
        if size == 8:
            yield (attribute, *struct.unpack_from("<II", data, at))
        at += size


def _named(elf, prefix):
    return {s.name[len(prefix):]: s for s in elf.sections if s.name.startswith(prefix)}


def _cubin(image, target, name):
    elf = Elf(image, f"{name}: {target}")
    symbols = elf.symbols()
    kernels = {name: Kernel(name) for name in _named(elf, ".text.")}
    for name, section in _named(elf, ".nv.shared.").items():
        if name in kernels:
            kernels[name].shared = section.size
    for attribute, symbol, value in _attributes(elf.section(".nv.info")):
        kernel = kernels.get(symbols[symbol]) if symbol < len(symbols) else None
        if kernel and attribute == REGISTERS:
            kernel.vgprs = value
        elif kernel and attribute == FRAME:
            kernel.scratch = value
    return Code(target, list(kernels.values()), set(symbols), image)


def may_fuse(image):
    """Returns true if the assembler was allowed to fuse. Older ones do not record their options."""
    told = Elf(image, "cubin").section(".note.nv.tkinfo")
    return bool(told) and b"-fmad false" not in told
