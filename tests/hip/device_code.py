"""Makes object files with device code that no compiler would make, for the check to refuse."""
import struct


def msgpack(value):
    if isinstance(value, dict):
        return (b"\xdf" + struct.pack(">I", len(value)) +
                b"".join(msgpack(k) + msgpack(v) for k, v in value.items()))
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(msgpack, value))
    if isinstance(value, str):
        return b"\xda" + struct.pack(">H", len(value)) + value.encode()
    return b"\xce" + struct.pack(">I", value)


def elf(sections):
    """sections: (name, bytes) pairs."""
    names, content, headers = b"\0", b"", [bytes(64)]
    for name, data in [*sections, (".shstrtab", None)]:
        at = len(names)
        names += name.encode() + b"\0"
        data = names if data is None else data
        headers.append(struct.pack("<IIQQQQIIQQ", at, 1, 0, 0, 64 + len(content), len(data), 0, 0, 1, 0))
        content += data
    head = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack(
        "<HHIQQQIHHHHHH", 1, 0, 1, 0, 0, 64 + len(content), 0, 64, 0, 0, 64, len(headers),
        len(headers) - 1)
    return head + content + b"".join(headers)


def kernel(name, wave=64, **more):
    """more: further facts, such as vgpr_spill_count=1."""
    return {".name": name, ".wavefront_size": wave, ".vgpr_count": 10, ".sgpr_count": 20,
            **{f".{key}": value for key, value in more.items()}}


def code_object(*kernels, clang=19):
    described = msgpack({"amdhsa.kernels": list(kernels)})
    note = struct.pack("<III", 7, len(described), 32) + b"AMDGPU\0\0" + described
    return elf([(".note", note), (".comment", b"clang version %d.0.1\0clang version 3" % clang)])


def bundle(codes):
    """codes: {target: bytes}. The host's empty entry comes first."""
    entries = [("host-x86_64-unknown-linux", b"")]
    entries += [(f"hipv4-amdgcn-amd-amdhsa--{target}", code) for target, code in codes.items()]
    head = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", len(entries))
    at = len(head) + sum(24 + len(name) for name, _ in entries)
    content = b""
    for name, code in entries:
        head += struct.pack("<QQQ", at + len(content), len(code), len(name)) + name.encode()
        content += code
    return head + content


def host_object(*sources, registered=()):
    """sources: bundles. registered: the names that the host's side registers."""
    strings = b"\0".join(name.encode() for name in registered) + b"\0"
    return elf([(".hip_fatbin", b"".join(sources)), (".rodata.str1.1", strings)])


def fat_binary(*entries):
    """Makes NVIDIA's form. entries: (kind, number, flags, bytes)."""
    content = b""
    for kind, number, flags, data in entries:
        content += struct.pack("<HHIQ", kind, 257, 64, len(data)) + bytes(12)
        content += struct.pack("<I", number) + bytes(8) + struct.pack("<I", flags) + bytes(20)
        content += data
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(content)) + content
