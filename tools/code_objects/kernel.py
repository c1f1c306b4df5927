"""The facts about a kernel, and about the code for one target."""
from dataclasses import dataclass, field


@dataclass
class Kernel:
    name: str
    wave: int = 32
    threads: int = 0  # the most of a block; 0: not stated
    vgprs: int = 0
    sgprs: int = 0
    shared: int = 0  # static bytes of a block
    scratch: int = 0  # bytes of a thread, for local arrays and spilled registers
    vgpr_spills: int = 0
    sgpr_spills: int = 0


@dataclass
class Code:
    """The code of one source for one target."""
    target: str
    kernels: list = field(default_factory=list)
    names: set = field(default_factory=set)  # of all symbols, with variables
    image: bytes = b""
    text: str = ""  # PTX, whose kernels are not listed
    clang: int = 0  # the compiler's major version; 0: not stated
