"""Checks device code. Each check yields a sentence for everything that is wrong."""
import re
import struct

from code_objects import amd, fused, nvidia
from code_objects.elf import Elf, Unreadable


class Input:
    """The device code of one file: for each source in it, a list of Code."""

    def __init__(self, path):
        with open(path, "rb") as file:
            elf = Elf(file.read(), path)
        self.path = path
        try:
            self.sources = (amd.bundles(elf.section(amd.SECTION), path) +
                            nvidia.bundles(elf.section(nvidia.SECTION), path))
        except (struct.error, ValueError, IndexError, KeyError) as error:
            raise Unreadable(f"{path}: its device code can't be read ({error})") from error
        if not any(self.sources):
            raise Unreadable(f"{path}: no device code in it")
        # The names that the host's side registers are strings there, even in a stripped file.
        self.registered = elf.strings(b"_Z")

    def codes(self):
        return [code for source in self.sources for code in source]

    def targets(self):
        return list(dict.fromkeys(code.target for code in self.codes()))


def targets(found, expected):
    """Checks that every source has code for exactly the expected targets."""
    for source in found.sources:
        have = {code.target for code in source}
        for target in sorted(set(expected) - have):
            yield f"no code for {target}{_example(source)}"
        for target in sorted(have - set(expected)):
            yield f"code for {target}, which nobody asked for{_example(source)}"


def _example(source):
    names = [kernel.name for code in source for kernel in code.kernels]
    return f" (of a source with {names[0]})" if names else ""


def kernels(found):
    """Checks that all targets have the same kernels, with all that the host will ask for."""
    for target in found.targets():
        if target.startswith("compute_"):
            continue
        names = set()
        for code in found.codes():
            if code.target == target:
                names |= code.names | {kernel.name for kernel in code.kernels}
        for name in sorted(found.registered - names):
            yield f"{target}: {name} is registered and not there"
    for source in found.sources:
        compiled = [code for code in source if not code.text and code.kernels]
        every = set().union(*({k.name for k in code.kernels} for code in compiled))
        for code in compiled:
            for name in sorted(every - {kernel.name for kernel in code.kernels}):
                yield f"{code.target}: {name} is there for other targets only"


def waves(found):
    for code in found.codes():
        wave = amd.wave_of(code.target) if code.target.startswith("gfx") else 32
        for kernel in code.kernels:
            if kernel.wave != wave:
                yield f"{code.target}: {kernel.name} is for waves of {kernel.wave}, not {wave}"


class Memory:
    """Checks that only allowed kernels use scratch memory, for spilled registers or for arrays."""

    def __init__(self, allowed, sgprs):
        """allowed: patterns of names. sgprs: scalar registers may be spilled into vector lanes."""
        self.unused = {pattern: re.compile(pattern) for pattern in allowed}
        self.allowed = dict(self.unused)
        self.sgprs = sgprs

    def check(self, found, readable):
        for code in found.codes():
            if code.target.startswith("gfx") and amd.has_half_the_registers(code):
                continue
            for kernel in code.kernels:
                failure = self._of(kernel)
                if not failure:
                    continue
                name = readable(kernel.name)
                matching = [p for p, regex in self.allowed.items()
                            if regex.search(name) or regex.search(f"{code.target}: {name}")]
                for pattern in matching:
                    self.unused.pop(pattern, None)
                if not matching:
                    yield f"{code.target}: {kernel.name} {failure}"

    def _of(self, kernel):
        if kernel.vgpr_spills or kernel.sgpr_spills and not self.sgprs:
            return f"spills {kernel.vgpr_spills} VGPRs and {kernel.sgpr_spills} SGPRs"
        return f"has {kernel.scratch} bytes of scratch memory" if kernel.scratch else ""


class Disassembly:
    """Disassembles AMD's code objects, each only once."""

    def __init__(self, objdump):
        self.objdump = objdump
        self.texts = {}

    def of(self, code):
        if id(code) not in self.texts:
            self.texts[id(code)] = fused.disassemble(code.image, self.objdump)
        return self.texts[id(code)]


def exactness(found, disassembly):
    """Checks that nothing is fused. Code that can't be read fails the check."""
    for code in found.codes():
        if code.target.startswith("compute_"):
            if not code.text:
                yield f"{code.target}: compressed (build with --no-compress)"
            fusions = fused.in_ptx(code.text)
        elif code.target.startswith("sm_"):
            fusions = []
            if nvidia.may_fuse(code.image):
                yield f"{code.target}: assembled without --fmad=false{_example([code])}"
        else:
            try:
                fusions = fused.in_disassembly(disassembly.of(code))
            except fused.NoDisassembler as error:
                yield f"{code.target}: {error}"
                continue
        counts = {}
        for fusion in fusions:
            counts[fusion] = counts.get(fusion, 0) + 1
        for (kernel, instruction), count in counts.items():
            yield f"{code.target}: {kernel} has {count} {instruction}"


def units(found, pattern, disassembly):
    """Checks that kernels whose names match use their target's matrix unit or consist of a trap. On
    a target with a unit at least one must use it; on other targets all must be traps."""
    for target in found.targets():
        unit = amd.unit_of(target)
        used = 0
        for code in found.codes():
            named = [k.name for k in code.kernels if re.search(pattern, k.name)]
            if code.target != target or not named:
                continue
            try:
                bodies = fused.bodies(disassembly.of(code))
            except fused.NoDisassembler as error:
                yield f"{target}: {error}"
                return
            for name in named:
                body = bodies.get(name, [])
                if unit and any(word.startswith(unit) for word in body):
                    used += 1
                elif len(body) > 16 or "s_trap" not in body:
                    yield f"{target}: {name} does not use {unit or 'a matrix unit, as there is none'}"
        if unit and not used:
            yield f"{target}: no kernel that is called {pattern} uses {unit}"
