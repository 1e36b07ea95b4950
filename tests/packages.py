"""Build the wheel and the source archive and try each away from the checkout.

`python3 tests/packages.py` makes a fresh environment in a temporary folder, installs the wheel with
the extras data and page, and runs verify, figure, run and explore in an empty folder; then it does
the same with the source archive. It takes some minutes, most of them for pip.
"""

import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STUDY = """
import penchant

def cell(alpha, seed):
    problem = penchant.problems.sparse_regression(6, 12, sparsity=2, seed=seed)
    beta = penchant.interpolate(problem, penchant.Q(depth=2, alpha=alpha)).beta
    return {"error": problem.population_error(beta)}

study = penchant.Study(name="tried", function=cell, grid={"alpha": [0.01, 1.0]}, seeds=2)
"""


def clean() -> dict[str, str]:
    """The environment variables without the one that could lead to the checkout."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def ran(*command: str | Path, folder: Path) -> str:
    """What a command printed; one that fails ends the script."""
    words = [str(word) for word in command]
    found = subprocess.run(words, cwd=folder, env=clean(), capture_output=True, text=True)
    if found.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{found.stdout}{found.stderr}")
    return found.stdout


def tried(environment: Path, folder: Path) -> None:
    """Run four commands of the installed package in an empty folder and look at what they leave."""
    folder.mkdir()
    penchant, python = environment / "bin" / "penchant", environment / "bin" / "python"
    module = Path(
        ran(python, "-c", "import penchant; print(penchant.__file__)", folder=folder).strip()
    )
    if ROOT in module.parents or environment not in module.parents:
        raise SystemExit(f"packages: {module} was imported, not the installed package")
    if "holds" not in ran(penchant, "verify", "W-L7", folder=folder):
        raise SystemExit("packages: penchant verify W-L7 does not hold")
    if "data:font/woff2" not in (folder / "penchant-report" / "index.html").read_text("utf-8"):
        raise SystemExit("packages: the report has no font for its formulas")
    ran(penchant, "figure", "W-F9", folder=folder)
    (folder / "tried.py").write_text(STUDY)
    ran(penchant, "run", "tried.py", folder=folder)
    left = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
    wanted = {
        "penchant-report/index.html",
        "penchant-report/verdicts.json",
        "penchant-studies/tried.nc",
    }
    wanted |= {"penchant-studies/tried.html"}
    if missing := wanted - left:
        raise SystemExit(f"packages: the commands left no {', '.join(sorted(missing))}")
    if not any(re.fullmatch(r"penchant-figures/W-F9.*\.png", name) for name in left):
        raise SystemExit("packages: penchant figure W-F9 left no picture")
    explored(penchant, folder)


def explored(penchant: Path, folder: Path) -> None:
    """Open the page of `penchant explore` once."""
    command = [str(penchant), "explore", "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=clean() | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        try:
            lines = iter(process.stdout.readline, "")
            found = next(filter(None, (re.search(r"http://\S+", line) for line in lines)), None)
            if not found:
                raise SystemExit("packages: penchant explore printed no address")
            with urllib.request.urlopen(found[0], timeout=60) as answer:
                if b"<h1" not in answer.read():
                    raise SystemExit("packages: the page of penchant explore is empty")
        finally:
            process.terminate()


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory).resolve()
        environment, files = folder / "environment", folder / "files"
        ran(sys.executable, "-m", "venv", environment, folder=folder)
        pip = (environment / "bin" / "python", "-m", "pip", "install", "-q")
        ran(*pip, "build", folder=folder)
        ran(environment / "bin" / "python", "-m", "build", ROOT, "-o", files, folder=folder)
        (wheel,), (archive,) = files.glob("*.whl"), files.glob("*.tar.gz")
        ran(*pip, f"{wheel}[data,page]", folder=folder)
        tried(environment, folder / "wheel")
        print(f"{wheel.name} works")
        ran(*pip, "--force-reinstall", "--no-deps", archive, folder=folder)
        tried(environment, folder / "archive")
        print(f"{archive.name} works")


if __name__ == "__main__":
    main()
