"""The installation that README prints runs its examples in a fresh folder, with its outputs."""

import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CHECKOUT = ("pyproject.toml", "README.md", "LICENSE", "src")
SHOWN = re.compile(r"```python\n(.*?)```\n\n```text\n(.*?)```", re.S)


def examples():
    """(heading, code, what it prints) of each section of the page with an example."""
    sections = [part.split("\n", 1) for part in re.split(r"^## ", README, flags=re.M)[1:]]
    return [
        (heading, *SHOWN.search(text).groups()) for heading, text in sections if SHOWN.search(text)
    ]


def installations():
    """The commands of the page that install something for its examples, in their order."""
    (first, *_) = re.findall(r"^(python3 -m venv .*)$", README, re.M)
    create, install, check = first.split(" && ")
    assert check == ".venv/bin/penchant verify"  # minutes: a test of its own runs claims
    return [create, install, *re.findall(r"`(\.venv/bin/pip install [^`]+)`", README)]


def test_every_example_shows_what_it_prints():
    assert len(examples()) == README.count("```python") == 4
    assert len(installations()) == 3


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the page is for a POSIX shell")
def test_the_installation_runs_the_examples_in_a_fresh_environment(tmp_path):
    """torch is the build that this environment has: another would be gigabytes of CUDA."""
    for name in CHECKOUT:
        copied = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copied(ROOT / name, tmp_path / name)
    torch = pytest.importorskip("torch").__version__
    (tmp_path / "pins.txt").write_text(f"torch=={torch}\n")
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    env = {**kept, "PIP_CONSTRAINT": str(tmp_path / "pins.txt")}

    def run(command):
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    for command in installations():
        run(command.replace("python3", sys.executable))
    for number, (heading, code, printed) in enumerate(examples()):
        (tmp_path / f"example_{number}.py").write_text(code)
        assert run(f".venv/bin/python example_{number}.py") == printed, heading
    assert f"penchant {metadata.version('penchant')}" in run(".venv/bin/penchant --version")
