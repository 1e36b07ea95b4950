"""Every gallery script runs and draws; the docs show each picture and nothing that is not built."""

import ast
import functools
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import penchant
from penchant import Steps

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted((ROOT / "gallery").glob("plot_*.py"))
NAMES = [script.stem for script in SCRIPTS]


EVERYWHERE = {"sys", "numpy", "penchant", "jax.numpy"}
BESIDES = {  # a script that shows the user's own model needs the library it is written in
    "plot_is_my_network_lazy": {"torch"},
    "plot_when_will_it_grok": {"jax"},
    "plot_watch_a_lightning_run": {
        *("torch", "torch.nn", "torch.utils.data", "lightning", "penchant.watch.lightning"),
    },
}
LIGHTNING = ROOT / "gallery" / "plot_watch_a_lightning_run.py"


@functools.cache
def build():
    """The globals of docs/build.py."""
    return runpy.run_path(str(ROOT / "docs" / "build.py"))


def drawn(script, folder, monkeypatch):
    """The globals of a script after it ran in an empty folder, where it left one picture."""
    if lost := build()["lacking"](script):
        pytest.skip(f"{lost[0]} is not installed, and this script is about it")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", [str(script), "out.png"])
    with warnings.catch_warnings():
        if script == LIGHTNING:
            warnings.simplefilter("ignore")  # of the library itself
        left = runpy.run_path(str(script), run_name="__main__")
    assert [file.name for file in folder.iterdir()] == ["out.png"]
    picture = (folder / "out.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert 5_000 < len(picture) < 250_000  # the docs keep it with a palette
    return left


def instead_of_clothes(name, train, test, flat):
    """Digits where Fashion-MNIST was asked for, which tests cannot count on."""
    assert name == "fashion-mnist"
    return penchant.problems.images.load_images(
        "digits", train=train // 4, test=test // 10, flat=flat
    )


def lazy(left):
    """That one of both is lazy, and that the accuracies do not tell."""
    names = [text.get_text() for text in left["moved"].get_legend().get_texts()]
    assert names == ["start × 10: kernel", "start × 0.1: rich"]
    large, small = (line.get_ydata() for line in left["score"].get_lines())
    assert min(large[-1], small[-1]) > 0.93
    assert abs(large[-1] - small[-1]) < 0.03


def forecast(left):
    """Every forecast holds the jump, the first ones long before, when new pairs were unknown."""
    seen, jump = left["seen"], left["jump"]
    assert left["watch"].verdict.kind == "grok"
    ahead = seen.forecast_step.notnull() & (seen.step < jump)
    low, step, high = (
        seen[f"forecast_{end}"].values[ahead.values] for end in ("low", "step", "high")
    )
    assert len(step) > 8
    assert float(seen.step.values[ahead.values][0]) < jump / 20
    assert (low < jump).all()
    assert (jump < high).all()
    assert np.abs(step / jump - 1).max() < 0.25
    assert seen.test_acc.values[seen.call_step.values < jump / 5].max() < 0.2


def scaled(left):
    """Large starts turn their features less, and cost less if their outputs begin at zero."""
    turns, errors = ([line.get_ydata() for line in panel.get_lines()] for panel in left["panels"])
    for plain, unbiased in (turns, errors):
        assert np.isfinite([plain, unbiased]).all()
        assert unbiased[-1] < plain[-1]
    assert all(turn[-1] < turn[0] / 2 for turn in turns)


def reported(left):
    """The report of a Lightning run: it has learned, and its three layers have moved."""
    rows = {axes.get_ylabel(): axes for axes in left["picture"].axes}
    assert rows["accuracy"].get_lines()[0].get_ydata()[-1] > 0.85
    named = [text.get_text() for text in left["picture"].axes[-1].get_yticklabels()]
    assert named == ["0", "2", "4"]
    assert left["call"].watch.regime.kind in ("leaving", "rich")
    assert not left["call"].watch.failures


def spoiled(left):
    """The same globals with the message of the picture turned round."""
    if "moved" in left:
        left["moved"].get_legend().get_texts()[0].set_text("start × 10: rich")
    if "call" in left:
        left["picture"].axes[0].get_lines()[0].set_ydata([0.1] * 2)
    if "jump" in left:
        left["jump"] /= 2
    return left | {"panels": left.get("panels", [])[::-1]}


STATEMENTS = {  # what docs/theory says about these pictures
    "plot_is_my_network_lazy": lazy,
    "plot_when_will_it_grok": forecast,
    "plot_what_does_alpha_do": scaled,
    "plot_watch_a_lightning_run": reported,
}


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_script_draws_one_picture(script, tmp_path, monkeypatch):
    if script.stem == "plot_what_does_alpha_do":
        monkeypatch.setattr(penchant.problems, "load_images", instead_of_clothes)
    # that it runs and draws depends neither on how long it trains nor on how fine its grid is
    if script.stem not in STATEMENTS:
        monkeypatch.setattr(penchant, "Steps", lambda count: Steps(min(count, 60)))
    if script.stem == "plot_scale_and_imbalance":
        spaced = np.geomspace
        monkeypatch.setattr(np, "geomspace", lambda a, b, n: spaced(a, b, 3))
    left = drawn(script, tmp_path, monkeypatch)
    if script.stem in STATEMENTS:
        STATEMENTS[script.stem](left)
        with pytest.raises(AssertionError):
            STATEMENTS[script.stem](spoiled(left))


def test_without_the_images_a_script_ends_with_the_way_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("PENCHANT_CACHE", str(tmp_path / "nothing"))
    monkeypatch.setattr(sys, "argv", ["plot_what_does_alpha_do.py", "out.png"])
    script = ROOT / "gallery" / "plot_what_does_alpha_do.py"
    with pytest.raises(SystemExit, match="`penchant data fashion-mnist` shows how to get it"):
        runpy.run_path(str(script), run_name="__main__")


def test_without_lightning_its_script_ends_with_the_way_to_get_it(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, "lightning", None)
    monkeypatch.setattr(sys, "argv", [str(LIGHTNING), "out.png"])
    with pytest.raises(SystemExit, match=r"needs Lightning, .* pip install 'penchant\[stacks\]'"):
        runpy.run_path(str(LIGHTNING), run_name="__main__")


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_script_is_short_explained_and_public(script):
    text = script.read_text()
    tree = ast.parse(text)
    prose = [line for line in text.splitlines() if line.startswith("# ")]  # on the site, text
    assert len(text.splitlines()) - len(prose) <= 48
    code = [line for line in text.split('"""', 2)[2].splitlines() if line.strip()]
    assert len(code) - len(prose) <= 40
    assert len(prose) <= 16
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
    assert froms <= {"penchant", "penchant.plotting", "penchant.problems"} | BESIDES.get(
        script.stem, set()
    )


def test_a_script_runs_from_the_command_line(tmp_path):
    script = ROOT / "gallery" / "plot_from_l2_to_l1.py"
    subprocess.run([sys.executable, "-W", "error", str(script)], cwd=tmp_path, check=True)
    assert [file.name for file in tmp_path.iterdir()] == ["from_l2_to_l1.png"]


def test_the_docs_show_every_picture_and_only_built_ones():
    chapters = (ROOT / "docs" / "theory").glob("*.md")
    theory = "".join(page.read_text() for page in chapters)
    shown = re.findall(r"!\[.+?\]\(\.\./pictures/(.+?)\)", theory)
    assert sorted(shown) == sorted(build()["gallery_pictures"]())
    assert set(re.findall(r"\(\.\./\.\./gallery/(.+?)\)", theory)) == {
        path.name for path in SCRIPTS
    }
    diagrams = (ROOT / "docs" / "diagrams.md").read_text()
    shown = re.findall(r"!\[.+?\]\(pictures/(.+?)\.svg\)", diagrams)
    assert sorted(shown) == sorted(build()["DIAGRAMS"])
    scale = (ROOT / "docs" / "scale.md").read_text()
    shown = re.findall(r"!\[.+?\]\(pictures/(.+?)\.png\)", scale)
    assert sorted(shown) == sorted(build()["PHASES"])


def test_the_pictures_of_the_docs_are_there_and_small():
    files = {file.name: file for file in (ROOT / "docs" / "pictures").iterdir()}
    assert set(files) == set(build()["pictures"]().values())
    sizes = {name: file.stat().st_size for name, file in files.items()}
    assert max(sizes.values()) < 64_000, sizes
    assert sum(sizes.values()) < 42_000 * len(sizes)
    for file in files.values():
        if file.suffix == ".png":
            with Image.open(file) as picture:
                assert picture.mode == "P", file.name  # a palette
                assert picture.info["dpi"] == pytest.approx((200, 200), abs=0.5), file.name


def test_a_shorter_svg_draws_the_same_lines():
    svg = (
        '<svg xmlns:xlink="x"><metadata>who</metadata><!-- u --><g id="text_1"/>\n <defs>\n'
        '<path id="Sans-58" d="M 1.23456 2.5 \nL 3 4.00001 "/></defs><g id="a" '
        'transform="translate(1.005 2) scale(0.015625)">\n<use xlink:href="#Sans-58"/></g></svg>'
    )
    assert build()["shorter"](svg) == (
        '<svg xmlns:xlink="x"><defs><path id="n0" d="M 1.23 2.5 L 3 4 "/></defs>'
        '<g transform="translate(1 2) scale(0.015625)"><use xlink:href="#n0"/></g></svg>'
    )
