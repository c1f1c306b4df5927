"""What is known of a kernel, and of the code for one target."""
from dataclasses import dataclass, field


@dataclass
class Kernel:
    name: str
    wave: int = 32
    threads: int = 0  # of a block, at the most; 0: not said
    vgprs: int = 0
    sgprs: int = 0
    shared: int = 0  # bytes that a block has from the beginning
    scratch: int = 0  # bytes of a thread: local arrays, spilled registers
    vgpr_spills: int = 0
    sgpr_spills: int = 0


@dataclass
class Code:
    """One source's code for one target."""
    target: str
    kernels: list = field(default_factory=list)
    names: set = field(default_factory=set)  # of everything in it, variables too
    image: bytes = b""
    text: str = ""  # PTX; has no kernels of its own
    clang: int = 0  # the compiler's version, where that is said
