"""Build the pictures of the docs: `python docs/build.py [FOLDER [NAME ...]]` fills docs/pictures/.

With names, `W-F9` or `when_will_it_grok`, only these. A script that imports a library that is not
installed (torch, lightning) is left out with a sentence, and its old picture stays; the picture
what_does_alpha_do needs Fashion-MNIST (`penchant data fashion-mnist`).
The four phase diagrams are those of `penchant run`. The diagrams of networks are SVG, the others
are PNG of 200 dpi with a palette: sharp on every screen, and small.
"""

import ast
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from PIL import Image

import penchant
from penchant.lab import all_claims, read_study
from penchant.plotting import styled
from penchant.plotting.mplstyle import parameters
from penchant.plotting.study.picture import draw_study
from penchant.threads import one_thread

HERE = Path(__file__).resolve().parent
GALLERY = HERE.parent / "gallery"
DIAGRAMS = ("W-F9", "M-F2", "W-F4", "M-F1")
PHASES = ("phase-scale-width", "phase-scale-accuracy", "phase-start-decay", "phase-step-beta")
COLOURS = 96  # of a palette: those of the lines and of the rims of letters; 256 for maps


def gallery_pictures() -> dict[str, Path]:
    """The script behind each picture, by the picture's file name."""
    scripts = sorted(GALLERY.glob("plot_*.py"))
    return {f"{script.stem.removeprefix('plot_')}.png": script for script in scripts}


def pictures() -> dict[str, str]:
    """The file of every picture, by its name."""
    files = [f"{name}.svg" for name in DIAGRAMS] + [f"{name}.png" for name in PHASES]
    return {file.rpartition(".")[0]: file for file in [*files, *gallery_pictures()]}


def build(folder: Path, names: Collection[str] = ()) -> list[Path]:
    """The pictures written, those called `names` or all there are; if one fails, none is."""
    known = pictures()
    if strange := sorted({*names} - {*known}):
        raise SystemExit(
            f"there is no picture {strange[0]}; choose from {', '.join(sorted(known))}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as stage, one_thread(xla=False):
        for name in names or known:
            file = Path(stage) / known[name]
            if lost := lacking(gallery_pictures().get(file.name)):
                print(f"{file.name} is left out, since its script needs {lost[0]} (not installed)")
                continue
            _draw(name, file)
            _shrink(file, 256 if name in PHASES else COLOURS)
        return [file.replace(folder / file.name) for file in sorted(Path(stage).iterdir())]


def lacking(script: Path | None) -> list[str]:
    """The libraries that a script imports and that are not installed."""
    nodes = ast.walk(ast.parse(script.read_text())) if script else ()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return [name for name in names if not importlib.util.find_spec(name.split(".")[0])]


def _draw(name: str, file: Path) -> None:
    if name in DIAGRAMS:
        experiment = all_claims()[name]
        with styled():
            experiment.picture(experiment.data()).savefig(file, metadata={"Date": None})
        return
    if name in PHASES:
        with tempfile.TemporaryDirectory() as place, styled():
            dataset = penchant.run(read_study(name), place, engine="processes")
            draw_study(dataset).savefig(file)
        return
    script = gallery_pictures()[file.name]
    if subprocess.run([sys.executable, str(script), str(file)]).returncode:
        raise SystemExit(f"{script.name} failed, so no picture was written")


def _shrink(file: Path, colours: int) -> None:
    """Write the picture again in fewer bytes."""
    if file.suffix == ".svg":
        file.write_text(shorter(file.read_text()))
        return
    with Image.open(file) as whole:
        few = whole.convert("RGB").quantize(colours, dither=Image.Dither.NONE)
    few.save(file, optimize=True, dpi=(parameters()["savefig.dpi"],) * 2)


def shorter(svg: str) -> str:
    """The same drawing without remarks, with short names, and without digits that nobody sees."""
    text = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    used = dict.fromkeys(re.findall(r'(?:href="|url\()#([^")]+)', text))
    names = {name: f"n{place}" for place, name in enumerate(used)}
    text = re.sub(r' id="([^"]+)"', lambda m: f' id="{names[m[1]]}"' if m[1] in used else "", text)
    text = re.sub(r'(href="|url\()#([^")]+)', lambda m: f"{m[1]}#{names[m[2]]}", text)
    text = re.sub(r"\s*\n\s*", " ", text)
    text = re.sub(r' d="[^"]*"|translate\([^)]*\)', _rounded, text)
    return re.sub(r"<g ?/>|(?<=>) (?=<)", "", text)


def _rounded(numbers: re.Match[str]) -> str:
    return re.sub(
        r"-?\d+\.\d+", lambda one: f"{float(one[0]):.2f}".rstrip("0").rstrip("."), numbers[0]
    )


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "pictures"
    for picture in build(place, sys.argv[2:]):
        print(picture)
