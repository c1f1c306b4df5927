"""Prints tables of device code, with a line for each target or for each kernel."""
import re
import shutil
import subprocess


def demangle(names):
    """Maps names to their source form if binutils are installed. Drops the parameters: no kernel of
    this project is overloaded."""
    names = list(names)
    if not names or not shutil.which("c++filt"):
        return dict(zip(names, names))
    done = subprocess.run(["c++filt", "-p"], input="\n".join(names), stdout=subprocess.PIPE,
                          text=True, check=False)
    readable = done.stdout.splitlines()
    if len(readable) != len(names):
        return dict(zip(names, names))
    return dict(zip(names, (r.replace("(anonymous namespace)::", "") for r in readable)))


def readable(text):
    names = re.findall(r"\b_Z\w+", text)
    for mangled, name in demangle(names).items():
        text = text.replace(mangled, name)
    return text


def _table(heads, rows):
    """Aligns the first and the last column to the left, the numbers between to the right."""
    widths = [max(len(str(row[i])) for row in [heads, *rows]) for i in range(len(heads))]
    lines = []
    for row in [heads, *rows]:
        cells = [str(cell).rjust(width) for cell, width in zip(row, widths)]
        cells[0] = str(row[0]).ljust(widths[0])
        cells[-1] = str(row[-1])
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _spills(kernels):
    """Returns the most spilled vector and scalar registers of one kernel."""
    return (f"{max(kernel.vgpr_spills for kernel in kernels)}+"
            f"{max(kernel.sgpr_spills for kernel in kernels)}")


def by_target(found):
    rows = []
    for target in found.targets():
        codes = [code for code in found.codes() if code.target == target]
        kernels = [kernel for code in codes for kernel in code.kernels]
        if not kernels:
            rows.append((target, len(codes), "", "", "", "", "", "", "", "PTX"))
            continue
        most = max(kernels, key=lambda kernel: kernel.vgprs)
        rows.append((target, len(codes), len(kernels), most.wave, most.vgprs,
                     max(kernel.sgprs for kernel in kernels),
                     max(kernel.shared for kernel in kernels),
                     max(kernel.scratch for kernel in kernels),
                     _spills(kernels), demangle([most.name])[most.name]))
    return _table(("target", "sources", "kernels", "wave", "VGPRs", "SGPRs", "shared", "scratch",
                   "spills", "most VGPRs"), rows)


def by_kernel(found):
    names = demangle({kernel.name for code in found.codes() for kernel in code.kernels})
    rows = [(code.target, kernel.wave, kernel.threads or "", kernel.vgprs, kernel.sgprs,
             kernel.shared, kernel.scratch, _spills([kernel]), names[kernel.name])
            for code in found.codes() for kernel in code.kernels]
    rows.sort(key=lambda row: (row[-1], row[0]))
    return _table(("target", "wave", "threads", "VGPRs", "SGPRs", "shared", "scratch", "spills",
                   "kernel"), rows)
