"""Every gallery script runs and draws; the docs show each picture and nothing that is not built."""

import ast
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = sorted((ROOT / "gallery").glob("plot_*.py"))
NAMES = [script.stem for script in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_script_draws_one_picture(script, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(script), "out.png"])
    runpy.run_path(str(script), run_name="__main__")
    assert [file.name for file in tmp_path.iterdir()] == ["out.png"]
    picture = (tmp_path / "out.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert 5_000 < len(picture) < 80_000


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_script_is_short_explained_and_public(script):
    text = script.read_text()
    tree = ast.parse(text)
    assert len(text.splitlines()) <= 48
    code = [line for line in text.split('"""', 2)[2].splitlines() if line.strip()]
    assert len(code) <= 40
    title, line, *_ = ast.get_docstring(tree).splitlines()
    assert line == "=" * len(title)
    modules = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    froms = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules <= {"sys", "numpy", "tacit", "jax.numpy"}
    assert froms <= {"tacit.figures.style"}


def test_a_script_runs_from_the_command_line(tmp_path):
    script = ROOT / "gallery" / "plot_from_l2_to_l1.py"
    subprocess.run([sys.executable, "-W", "error", str(script)], cwd=tmp_path, check=True)
    assert [file.name for file in tmp_path.iterdir()] == ["from_l2_to_l1.png"]


def test_the_docs_show_every_picture_and_only_built_ones():
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    theory = (ROOT / "docs" / "theory.md").read_text()
    shown = re.findall(r"!\[.+?\]\(pictures/(.+?)\)", theory)
    assert sorted(shown) == sorted(build["gallery_pictures"]())
    assert len(shown) == 18
    assert set(re.findall(r"\(\.\./gallery/(.+?)\)", theory)) == {path.name for path in SCRIPTS}
    diagrams = (ROOT / "docs" / "diagrams.md").read_text()
    shown = re.findall(r"!\[.+?\]\(pictures/(.+?)\.png\)", diagrams)
    assert sorted(shown) == sorted(build["DIAGRAMS"])


def test_the_pictures_of_the_docs_are_there_and_small():
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    expected = {*build["gallery_pictures"](), *(f"{id}.png" for id in build["DIAGRAMS"])}
    files = {file.name: file.stat().st_size for file in (ROOT / "docs" / "pictures").glob("*.png")}
    assert set(files) == expected
    assert max(files.values()) < 80_000
