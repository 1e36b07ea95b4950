"""Every gallery script runs and draws; the docs show each picture and nothing that is not built."""

import ast
import dataclasses
import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tacit
from tacit.training.stop import Steps

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "gallery").glob("plot_*.py"))
NAMES = [script.stem for script in SCRIPTS]


EVERYWHERE = {"sys", "numpy", "tacit", "jax.numpy"}
BESIDES = {  # a script that shows the user's own model needs the library it is written in
    "plot_is_my_network_lazy": {"torch"},
    "plot_when_will_it_grok": {"jax"},
}


def drawn(script, folder, monkeypatch):
    """The globals of a script after it ran in an empty folder, where it left one picture."""
    if "torch" in BESIDES.get(script.stem, ()) and not importlib.util.find_spec("torch"):
        pytest.skip("torch is not installed, and this script is about a PyTorch model")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [str(script), "out.png"])
    left = runpy.run_path(str(script), run_name="__main__")
    assert [file.name for file in folder.iterdir()] == ["out.png"]
    picture = (folder / "out.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert 5_000 < len(picture) < 250_000  # the docs keep it with a palette
    return left


def instead_of_clothes(name, train, test, flat):
    """Digits where Fashion-MNIST was asked for, which tests cannot count on."""
    assert name == "fashion-mnist"
    return tacit.problems.images.load_images("digits", train=train // 4, test=test // 10, flat=flat)


def lazy(left):
    """That one of both is lazy, and that the accuracies do not tell."""
    names = [text.get_text() for text in left["moved"].get_legend().get_texts()]
    assert names == ["start × 10: kernel", "start × 0.1: rich"]
    large, small = (line.get_ydata() for line in left["score"].get_lines())
    assert min(large[-1], small[-1]) > 0.93
    assert abs(large[-1] - small[-1]) < 0.03


def predicted(left):
    """The jump is in the interval, which was predicted long before new pairs were learned."""
    watch, told = left["watch"], left["forecast"]
    happened = watch.verdict
    assert happened.kind == "grok", happened
    assert left["early"] < told.low < happened.jump < told.high, (told, happened)
    assert told.step == pytest.approx(happened.jump, rel=0.25)
    before = watch.dataset.test_acc.values[watch.dataset.call_step.values <= left["early"]]
    assert before.max() < 0.2


def scaled(left):
    """Large starts turn their features less, and cost less if their outputs begin at zero."""
    turns, errors = ([line.get_ydata() for line in panel.get_lines()] for panel in left["panels"])
    for plain, unbiased in (turns, errors):
        assert np.isfinite([plain, unbiased]).all()
        assert unbiased[-1] < plain[-1]
    assert all(turn[-1] < turn[0] / 2 for turn in turns)


def spoiled(left):
    """The same globals with the message of the picture turned round."""
    if "moved" in left:
        left["moved"].get_legend().get_texts()[0].set_text("start × 10: rich")
    if "forecast" in left:
        left["forecast"] = dataclasses.replace(left["forecast"], high=left["forecast"].low)
    return left | {"panels": left.get("panels", [])[::-1]}


SAYS = {  # what docs/theory.md says about these pictures
    "plot_is_my_network_lazy": lazy,
    "plot_when_will_it_grok": predicted,
    "plot_what_does_alpha_do": scaled,
}


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_script_draws_one_picture(script, tmp_path, monkeypatch):
    if script.stem == "plot_what_does_alpha_do":
        monkeypatch.setattr(tacit, "load_images", instead_of_clothes)
    if script.stem not in SAYS:  # that it runs and draws does not depend on how long it trains
        monkeypatch.setattr(tacit, "Steps", lambda count: Steps(min(count, 300)))
    left = drawn(script, tmp_path, monkeypatch)
    if script.stem in SAYS:
        SAYS[script.stem](left)
        with pytest.raises(AssertionError):
            SAYS[script.stem](spoiled(left))


def test_without_the_images_a_script_ends_with_the_way_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("TACIT_CACHE", str(tmp_path / "nothing"))
    monkeypatch.setattr(sys, "argv", ["plot_what_does_alpha_do.py", "out.png"])
    script = ROOT / "gallery" / "plot_what_does_alpha_do.py"
    with pytest.raises(SystemExit, match="`tacit data fashion-mnist` shows how to get it"):
        runpy.run_path(str(script), run_name="__main__")


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
    assert modules <= EVERYWHERE | BESIDES.get(script.stem, set())
    assert froms <= {"tacit.plotting.style"}


def test_a_script_runs_from_the_command_line(tmp_path):
    script = ROOT / "gallery" / "plot_from_l2_to_l1.py"
    subprocess.run([sys.executable, "-W", "error", str(script)], cwd=tmp_path, check=True)
    assert [file.name for file in tmp_path.iterdir()] == ["from_l2_to_l1.png"]


def test_the_docs_show_every_picture_and_only_built_ones():
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    theory = (ROOT / "docs" / "theory.md").read_text()
    shown = re.findall(r"!\[.+?\]\(pictures/(.+?)\)", theory)
    assert sorted(shown) == sorted(build["gallery_pictures"]())
    assert set(re.findall(r"\(\.\./gallery/(.+?)\)", theory)) == {path.name for path in SCRIPTS}
    diagrams = (ROOT / "docs" / "diagrams.md").read_text()
    shown = re.findall(r"!\[.+?\]\(pictures/(.+?)\.svg\)", diagrams)
    assert sorted(shown) == sorted(build["DIAGRAMS"])
    scale = (ROOT / "docs" / "scale.md").read_text()
    shown = re.findall(r"!\[.+?\]\(pictures/(.+?)\.png\)", scale)
    assert sorted(shown) == sorted(build["PHASES"])


def test_the_pictures_of_the_docs_are_there_and_small():
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    files = {file.name: file for file in (ROOT / "docs" / "pictures").iterdir()}
    assert set(files) == set(build["pictures"]().values())
    sizes = {name: file.stat().st_size for name, file in files.items()}
    assert max(sizes.values()) < 64_000, sizes
    assert sum(sizes.values()) < 1_400_000
    for file in files.values():
        if file.suffix == ".png":
            with Image.open(file) as picture:
                assert picture.mode == "P", file.name  # a palette
                assert picture.info["dpi"] == pytest.approx((200, 200), abs=0.5), file.name


def test_a_shorter_svg_draws_the_same_lines():
    build = runpy.run_path(str(ROOT / "docs" / "build.py"))
    svg = (
        '<svg xmlns:xlink="x"><metadata>who</metadata><!-- u --><g id="text_1"/>\n <defs>\n'
        '<path id="Sans-58" d="M 1.23456 2.5 \nL 3 4.00001 "/></defs><g id="a" '
        'transform="translate(1.005 2) scale(0.015625)">\n<use xlink:href="#Sans-58"/></g></svg>'
    )
    assert build["shorter"](svg) == (
        '<svg xmlns:xlink="x"><defs><path id="n0" d="M 1.23 2.5 L 3 4 "/></defs>'
        '<g transform="translate(1 2) scale(0.015625)"><use xlink:href="#n0"/></g></svg>'
    )
