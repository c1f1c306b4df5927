"""Computes medians, spreads and verdicts, and formats them as a table."""
from statistics import median


class Samples:
    """One side's measurements of one work, in the work's unit."""

    def __init__(self, values):
        self.values = list(values)

    @property
    def median(self):
        return median(self.values)

    def text(self, unit, digits):
        middle = f"{self.median:.{digits}f}"
        if len(self.values) < 2:
            return f"{middle} {unit}"
        return f"{middle} ({min(self.values):.{digits}f}-{max(self.values):.{digits}f}) {unit}"


class Row:
    """A work with its measurements."""

    UNITS = {"decode": ("t/s", 1), "prefill": ("t/s", 1), "bandwidth": ("GB/s", 1),
             "first token": ("ms", 0), "memory": ("MiB", 0)}

    def __init__(self, work, ours, peer, share=None):
        self.work, self.ours, self.peer, self.share = work, ours, peer, share

    def _quotient(self, ours, peer):
        # The ratio is "how many times as good", and for a time less is better. Memory has a bar
        # from above, so its ratio is plainly ours over theirs.
        return peer / ours if self.work.kind == "first token" else ours / peer

    @property
    def ratio(self):
        return self._quotient(self.ours.median, self.peer.median)

    @property
    def ratio_range(self):
        ends = [self._quotient(a, b) for a in (min(self.ours.values), max(self.ours.values))
                for b in (min(self.peer.values), max(self.peer.values))]
        return min(ends), max(ends)

    @property
    def passed(self):
        return self.work.bar.holds(self.ratio, self.share)

    def cells(self):
        unit, digits = self.UNITS[self.work.kind]
        if self.work.bar.percent:
            ratio = f"{self.ratio:.0%}"
        else:
            low, high = self.ratio_range
            ratio = f"{self.ratio:.2f} ({low:.2f}-{high:.2f})"
            if self.share is not None:
                ratio += f", {self.share:.0%} of limit"
        peer = self.peer.text(unit, digits)
        if self.work.kind == "bandwidth":
            peer = "limit " + peer
        return [self.work.name, str(self.work.threads), self.ours.text(unit, digits), peer, ratio,
                self.work.bar.text(), "pass" if self.passed else "FAIL"]

    def raw(self):
        unit, _ = self.UNITS[self.work.kind]
        return {"work": self.work.name, "threads": self.work.threads, "unit": unit,
                "ours": self.ours.values, "peer": self.peer.values, "ratio": self.ratio,
                "ratio_range": self.ratio_range, "read_share": self.share,
                "bar": self.work.bar.text(), "passed": self.passed}


def table_text(rows):
    lines = [["work", "threads", "trine", "peer", "ratio", "bar", "verdict"]]
    lines += [row.cells() for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = ""
    for number, line in enumerate(lines):
        text += "| " + " | ".join(c.ljust(w) for c, w in zip(line, widths)) + " |\n"
        if number == 0:
            text += "| " + " | ".join("-" * w for w in widths) + " |\n"
    return text


def summary_text(rows):
    missed = [row for row in rows if not row.passed]
    return f"{len(rows) - len(missed)} of {len(rows)} bars held\n"
