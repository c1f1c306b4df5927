"""Reads AMD's device code: an offload bundle for each source, with an ELF file for each target."""
import re
import struct

from code_objects.elf import Elf, Unreadable, notes
from code_objects.kernel import Code, Kernel
from code_objects.msgpack import decode

SECTION = ".hip_fatbin"
MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED = b"CCOB"
AMDGPU_METADATA = 32


def bundles(data, name):
    """Returns a list of Code for each source."""
    if data.startswith(COMPRESSED):
        raise Unreadable(f"{name}: its device code is compressed (build without --offload-compress)")
    found, at = [], data.find(MAGIC)
    while at >= 0:
        found.append(list(_entries(data, at, name)))
        at = data.find(MAGIC, at + len(MAGIC))
    return found


def _entries(data, start, name):
    count, = struct.unpack_from("<Q", data, start + len(MAGIC))
    at = start + len(MAGIC) + 8
    for _ in range(count):
        offset, size, length = struct.unpack_from("<QQQ", data, at)
        triple = data[at + 24:at + 24 + length].decode()
        at += 24 + length
        if not size:
            continue  # the host's entry is always there, and always empty
        # The triple is hipv4-amdgcn-amd-amdhsa--gfx90a:xnack- or the like.
        target = triple[triple.index("gfx"):]
        yield _code(data[start + offset:start + offset + size], target, f"{name}: {target}")


def _code(image, target, name):
    elf = Elf(image, name)
    described = [content for kind, content in notes(elf.section(".note")) if kind == AMDGPU_METADATA]
    if not described:
        raise Unreadable(f"{name}: nothing describes its kernels")
    kernels = [_kernel(k) for k in decode(described[0]).get("amdhsa.kernels", [])]
    # The first version is that of the kernels; device libraries add their own.
    version = re.search(rb"clang version (\d+)", elf.section(".comment"))
    return Code(target, kernels, set(elf.symbols()), image,
                clang=int(version.group(1)) if version else 0)


def _kernel(said):
    return Kernel(said[".name"], said[".wavefront_size"], said.get(".max_flat_workgroup_size", 0),
                  said.get(".vgpr_count", 0), said.get(".sgpr_count", 0),
                  said.get(".group_segment_fixed_size", 0),
                  said.get(".private_segment_fixed_size", 0), said.get(".vgpr_spill_count", 0),
                  said.get(".sgpr_spill_count", 0))


def wave_of(target):
    """Returns the wave size: 64 for GCN and CDNA, 32 for RDNA unless it is told otherwise."""
    base = target.split(":")[0]
    return 64 if len(base) == 6 and base[3] in "6789" else 32


def unit_of(target):
    """Returns the prefix of a target's integer matrix instructions; "" if it has no such unit."""
    base = target.split(":")[0]
    if base in ("gfx908", "gfx90a", "gfx940", "gfx941", "gfx942"):
        return "v_mfma_i32_16x16x"
    return "v_wmma_i32_16x16x16_iu8" if base.startswith(("gfx11", "gfx120")) else ""


def has_half_the_registers(code):
    """Returns true for RDNA 3 code of Clang 15, which uses only 128 of the 256 registers."""
    return code.clang == 15 and code.target.startswith("gfx11")
