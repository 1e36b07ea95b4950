"""Runs every benchmark in turn; with `--write` the output becomes RESULTS.md beside this file.

Those against PyTorch run where torch is installed. The line below the name of a benchmark says when
it ran, with which version of penchant and under which load; the head has the last libraries.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
import os
import platform
import subprocess
import sys
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
SCRIPTS = (
    "regression_path",
    "large_path",
    "sparse_data",
    "predictions",
    "depth_path",
    "l1_endpoint",
    "margin_path",
    "panels",
    "exp_trajectory",
    "heatmap",
    "weight_decay",
    "steps",
    "studies",
    "explore",
    "imports",
    "stress",
    "verify",
)
WITH_TORCH = (
    "sparse_recovery",
    "modular_addition",
    "tangent_kernel",
    "real_nets",
    "relu_nets",
    "mnist",
    "watch",
)
LIBRARIES = ("numpy", "scipy", "jax", "cvxpy", "clarabel", "torch")


def processor() -> str:
    """The model of the processor and how many cores are in reach."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        model = platform.processor() or platform.machine()
    return f"{model}, {os.cpu_count()} cores"


def versions() -> str:
    """Python and the libraries that take part, with their versions."""
    found = [f"Python {platform.python_version()}"]
    for name in LIBRARIES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{name} (not installed)")
    return ", ".join(found)


def source_version() -> str:
    """The version of the sources beside this folder, whatever is installed."""
    with (HERE.parent / "pyproject.toml").open("rb") as file:
        return str(tomllib.load(file)["project"]["version"])


def run(name: str, flags: list[str]) -> str:
    """The section of one benchmark: its command, when and under which load it ran, its output."""
    start, load = time.perf_counter(), os.getloadavg()[0]
    print(f"... {name}", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, str(HERE / f"{name}.py"), *flags], capture_output=True,
                          text=True, check=False)  # fmt: skip
    output = done.stdout.strip() if done.returncode == 0 else f"FAILED\n\n{done.stderr.strip()}"
    took = time.perf_counter() - start
    command = " ".join(["python", f"benchmarks/{name}.py", *flags])
    busy = " (loaded machine)" if load > 1 else ""
    when = f"{datetime.date.today()}, penchant {source_version()}, load {load:.1f}{busy}"
    return f"## {name}\n`{command}` ({took:.0f} s; {when})\n\n{output}\n"


def stored_sections() -> dict[str, str]:
    """The sections of RESULTS.md by the name of their benchmark."""
    file = HERE / "RESULTS.md"
    parts = file.read_text(encoding="utf-8").split("\n## ")[1:] if file.exists() else []
    return {part.split("\n", 1)[0]: f"## {part.strip()}\n" for part in parts}


def main() -> None:
    known = [*SCRIPTS, *WITH_TORCH]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="some benchmarks only; others keep their section")
    parser.add_argument("--quick", action="store_true", help="small instances, only a smoke test")
    parser.add_argument("--write", action="store_true", help="write RESULTS.md")
    chosen = parser.parse_args()
    if wrong := set(chosen.names) - set(known):
        parser.error(f"unknown benchmark {min(wrong)!r}; known: {', '.join(known)}")
    flags = ["--quick"] if chosen.quick else []
    torch = WITH_TORCH if importlib.util.find_spec("torch") else ()
    sections = {name: run(name, flags) for name in chosen.names or (*SCRIPTS, *torch)}
    found = stored_sections() | sections
    old = (
        "Sections without a date are older, and the version of penchant was not recorded with them."
    )
    head = f"# Measured\n{processor()}\n\n{versions()}\n\n{old}\n"
    print("\n".join(sections.values()))
    if chosen.write:
        text = "\n".join([head, *(found[name] for name in known if name in found)])
        (HERE / "RESULTS.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
