"""Build the pictures of the docs: `python docs/build.py [FOLDER [NAME ...]]` fills docs/pictures/.

With names, `W-F9` or `when_will_it_grok`, only these. Two pictures need more than the package:
is_my_network_lazy the extra torch, what_does_alpha_do Fashion-MNIST (`tacit data fashion-mnist`).
The four phase diagrams are those of `tacit run`.
"""

import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from tacit.figures import draw, make
from tacit.figures.study import draw_study
from tacit.figures.style import styled
from tacit.studies.reading import read_study
from tacit.studies.run import run_study
from tacit.threads import one_thread

HERE = Path(__file__).resolve().parent
GALLERY = HERE.parent / "gallery"
DIAGRAMS = ("W-F9", "M-F2", "W-F4", "M-F1")
PHASES = ("phase-scale-width", "phase-scale-accuracy", "phase-start-decay", "phase-step-beta")


def gallery_pictures() -> dict[str, Path]:
    """The script behind each picture, by the picture's file name."""
    scripts = sorted(GALLERY.glob("plot_*.py"))
    return {f"{script.stem.removeprefix('plot_')}.png": script for script in scripts}


def build(folder: Path, names: Collection[str] = ()) -> list[Path]:
    """The pictures written, those called `names` or all there are; if one fails, none is."""
    known = {*DIAGRAMS, *PHASES, *(name.removesuffix(".png") for name in gallery_pictures())}
    if strange := sorted({*names} - known):
        raise SystemExit(
            f"there is no picture {strange[0]}; choose from {', '.join(sorted(known))}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as stage, one_thread(xla=False):
        for name in names or known:
            _draw(name, Path(stage) / f"{name}.png")
        return [file.replace(folder / file.name) for file in sorted(Path(stage).iterdir())]


def _draw(name: str, file: Path) -> None:
    if name in DIAGRAMS:
        with styled():
            draw(name, make(name)).savefig(file, dpi=100)
        return
    if name in PHASES:
        with tempfile.TemporaryDirectory() as place, styled():
            dataset = run_study(read_study(name), place, engine="processes")
            draw_study(dataset).savefig(file, dpi=100)
        return
    script = gallery_pictures()[file.name]
    if subprocess.run([sys.executable, str(script), str(file)]).returncode:
        raise SystemExit(f"{script.name} failed, so no picture was written")


if __name__ == "__main__":
    place = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "pictures"
    for picture in build(place, sys.argv[2:]):
        print(picture)
