"""Build the pictures of the docs: `python docs/build.py [FOLDER [NAME ...]]` fills docs/pictures/.

With names, `W-F9` or `when_will_it_grok`, only these. A script that imports a library that is not
installed (torch, lightning) is left out with a sentence, and its old picture stays; the picture
what_does_alpha_do needs Fashion-MNIST (`penchant data fashion-mnist`).
The processor time of each script goes into docs/seconds.json, which the pages of the gallery show.
The four phase diagrams are those of `penchant run`. The diagrams of networks are SVG, the others
are PNG of 200 dpi with a palette: sharp on every screen, and small.
"""

import ast
import importlib.util
import json
import os
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
        seconds: dict[str, float] = {}
        for name in names or known:
            file = Path(stage) / known[name]
            if lost := lacking(gallery_pictures().get(file.name)):
                print(f"{file.name} is left out, since its script needs {lost[0]} (not installed)")
                continue
            took = _draw(name, file)
            seconds |= {name: round(took, 1)} if file.name in gallery_pictures() else {}
            _shrink(file, 256 if name in PHASES else COLOURS)
        written = [file.replace(folder / file.name) for file in sorted(Path(stage).iterdir())]
    _note(folder.with_name("seconds.json"), seconds)
    return written


def _note(file: Path, seconds: dict[str, float]) -> None:
    """Enter the times of scripts into the file."""
    before = json.loads(file.read_text()) if file.is_file() else {}
    kept = {name: before[name] for name in before if f"{name}.png" in gallery_pictures()}
    file.write_text(json.dumps(dict(sorted((kept | seconds).items())), indent=1) + "\n")


def lacking(script: Path | None) -> list[str]:
    """The libraries that a script imports and that are not installed."""
    nodes = ast.walk(ast.parse(script.read_text())) if script else ()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return [name for name in names if not importlib.util.find_spec(name.split(".")[0])]


def _draw(name: str, file: Path) -> float:
    """Draw the picture into the file; the seconds of processor time of a script."""
    if name in DIAGRAMS:
        experiment = all_claims()[name]
        with styled():
            experiment.picture(experiment.data()).savefig(file, metadata={"Date": None})
        return 0.0
    if name in PHASES:
        with tempfile.TemporaryDirectory() as place, styled():
            dataset = penchant.run(read_study(name), place, engine="processes")
            draw_study(dataset).savefig(file)
        return 0.0
    script, before = gallery_pictures()[file.name], os.times()
    if subprocess.run([sys.executable, str(script), str(file)]).returncode:
        raise SystemExit(f"{script.name} failed, so no picture was written")
    after = os.times()
    user, system = "children_user", "children_system"
    return sum(getattr(after, part) - getattr(before, part) for part in (user, system))


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
