"""Wall time of `import penchant` and `penchant --help` in fresh processes."""

from __future__ import annotations

import subprocess
import sys

from clock import arguments, best_of, ratio, seconds, table

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import penchant": ["-c", "import penchant"],
    # what the console script runs, without asking where it is installed
    "penchant --help": [
        "-c",
        "import sys; sys.argv = ['penchant', '--help']; import penchant.cli as c; c.app()",
    ],
}


def run(command: list[str]) -> None:
    subprocess.run([sys.executable, *command], check=True, capture_output=True)


def main() -> None:
    quick = arguments(__doc__ or "").quick
    repeats = 2 if quick else 7
    times = {name: best_of(repeats, lambda c=c: run(c))[0] for name, c in COMMANDS.items()}
    print("Fresh processes, the best of several, so the files are in the disk cache.\n")
    table(["command", "time"], [[name, seconds(value)] for name, value in times.items()])
    ratio("import penchant / 0.5 s", times["import penchant"] / 0.5, "<= 1", judged=not quick)
    ratio("penchant --help / 1 s", times["penchant --help"] / 1.0, "<= 1", judged=not quick)
    print(f"import penchant / import numpy: {times['import penchant'] / times['import numpy']:.2f}")


if __name__ == "__main__":
    main()
