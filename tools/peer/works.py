"""The list of works to measure, each with its bar."""
from dataclasses import dataclass
from typing import Optional

SHIPPED = "tales-27m"
SMALL = "qwen2.5-0.5b"
LARGE = "llama-3.2-1b"

# The least speeds as multiples of the peer's, by type.
DECODE_BARS = {"Q4_0": 1.25, "Q8_0": 1.05, "Q4_K_M": 1.5, "F16": 0.98}
PREFILL_BARS = {"Q4_0": 2.0, "Q8_0": 2.0, "Q4_K_M": 2.0}
# The least shares of the machine's read bandwidth in decoding. Q8_0_SHARE can stand in for a bar.
BANDWIDTH_BARS = {"Q8_0": 0.88, "Q4_0": 0.80, "Q4_K_M": 0.80}
Q8_0_SHARE = 0.90
SHIPPED_BAR = 3.0
DEEP_BAR = 1.25
FIRST_TOKEN_BAR = 1.0
MEMORY_BAR = 1.05  # an upper bound
DEPTH = 4096
FIRST_TOKEN_PROMPT = 32


@dataclass(frozen=True)
class Model:
    shape: str
    type: str  # "": the model that comes with trine

    @property
    def name(self):
        return f"{self.shape} {self.type}".strip()

    @property
    def file(self):
        return f"{self.shape}-{self.type}.gguf"


@dataclass(frozen=True)
class Bar:
    value: float
    at_most: bool = False
    percent: bool = False
    or_share: Optional[float] = None  # a share of the read bandwidth that is enough by itself

    def text(self):
        sign = "<=" if self.at_most else ">="
        text = f"{sign} {self.value:.0%}" if self.percent else f"{sign} {self.value:g}"
        return text if self.or_share is None else f"{text} or {self.or_share:.0%} of limit"

    def holds(self, ratio, share=None):
        if self.or_share is not None and share is not None and share >= self.or_share:
            return True
        return ratio <= self.value if self.at_most else ratio >= self.value


@dataclass(frozen=True)
class Work:
    kind: str  # decode, prefill, bandwidth, first token, memory
    model: Model
    threads: int
    n_prompt: int
    n_gen: int
    depth: int
    bar: Bar

    @property
    def name(self):
        if self.kind == "bandwidth":
            return f"read bandwidth {self.model.name}"
        if self.kind == "memory":
            return f"peak memory {self.model.name}"
        length = f" {self.n_prompt}" if self.kind == "prefill" else ""
        depth = f" @ {self.depth}" if self.depth else ""
        return f"{self.kind}{length} {self.model.name}{depth}"

    @property
    def label(self):  # matched by --only
        return f"{self.name} t{self.threads}"


def decode(model, threads, n_gen, bar, depth=0):
    share = Q8_0_SHARE if model.type == "Q8_0" else None
    return Work("decode", model, threads, 0, n_gen, depth, Bar(bar, or_share=share))


def shipped_works(threads, n_gen):
    model = Model(SHIPPED, "")
    works = [decode(model, t, n_gen, SHIPPED_BAR) for t in threads]
    most = max(threads)
    works.append(Work("first token", model, most, FIRST_TOKEN_PROMPT, 0, 0, Bar(FIRST_TOKEN_BAR)))
    works.append(Work("memory", model, most, 0, n_gen, 0, Bar(MEMORY_BAR, at_most=True)))
    return works


def model_works(shape, kind, threads, n_prompt, n_gen):
    model = Model(shape, kind)
    works = []
    for t in threads:
        works.append(decode(model, t, n_gen, DECODE_BARS[kind]))
        if kind in PREFILL_BARS:
            works.append(Work("prefill", model, t, n_prompt, 0, 0, Bar(PREFILL_BARS[kind])))
        if shape == LARGE and kind in BANDWIDTH_BARS:
            bar = Bar(BANDWIDTH_BARS[kind], percent=True)
            works.append(Work("bandwidth", model, t, 0, n_gen, 0, bar))
    works.append(Work("memory", model, max(threads), 0, n_gen, 0, Bar(MEMORY_BAR, at_most=True)))
    return works


def quick_works(threads):
    most = [max(threads)]
    return shipped_works(most, 64) + model_works(SMALL, "Q4_0", most, 128, 32)


def all_works(threads, n_gen):
    works = shipped_works(threads, 4 * n_gen)
    for shape in (SMALL, LARGE):
        for kind in DECODE_BARS:
            works += model_works(shape, kind, threads, 512, n_gen)
    # Filling the context takes long, so it is done once, with the most threads.
    works.append(decode(Model(LARGE, "Q4_0"), max(threads), n_gen, DEEP_BAR, DEPTH))
    return works
