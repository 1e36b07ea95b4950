"""Build the pictures of the docs: `python docs/build.py [FOLDER]` fills docs/pictures/."""

import subprocess
import sys
import tempfile
from pathlib import Path

from tacit.figures import draw, make
from tacit.figures.style import styled

HERE = Path(__file__).resolve().parent
GALLERY = HERE.parent / "gallery"
DIAGRAMS = ("W-F9", "M-F2", "W-F4", "M-F1")


def gallery_pictures() -> dict[str, Path]:
    """The script behind each picture, by the picture's file name."""
    scripts = sorted(GALLERY.glob("plot_*.py"))
    return {f"{script.stem.removeprefix('plot_')}.png": script for script in scripts}


def build(folder: Path) -> list[Path]:
    """The pictures written: one per gallery script, one per diagram; all of them or none."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as stage:
        for name, script in gallery_pictures().items():
            subprocess.run([sys.executable, str(script), str(Path(stage) / name)], check=True)
        for id in DIAGRAMS:
            with styled():
                draw(id, make(id)).savefig(Path(stage) / f"{id}.png", dpi=100)
        return [file.replace(folder / file.name) for file in sorted(Path(stage).iterdir())]


if __name__ == "__main__":
    for picture in build(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "pictures"):
        print(picture)
