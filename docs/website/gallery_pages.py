"""A page for every script of gallery/: its picture as stored, its text, script and notebook.

The code of a page is cut into its imports, what is computed, and the picture, and before every
comment that has lines of its own at the left margin: that comment is the text before its code. A
block without one has a sentence that names what of penchant it uses. Themes are the chapters of the
theory that show a picture.
"""

import ast
import base64
import json
import re
import shutil
from itertools import pairwise, takewhile
from pathlib import Path
from typing import NamedTuple

from reference_pages import targets

ROOT = Path(__file__).resolve().parent.parent.parent
SAVING = re.compile(r'picture\.savefig\(sys\.argv\[1\] if .* else ("\w+\.png")\)')


def scripts() -> list[Path]:
    return sorted((ROOT / "gallery").glob("plot_*.py"))


def name_of(script: Path) -> str:
    return script.stem.removeprefix("plot_")


def parts(script: Path) -> tuple[str, str, str]:
    """Title, explanation and code of a script."""
    text = script.read_text(encoding="utf-8")
    title, _, words = (ast.get_docstring(ast.parse(text)) or "").partition("\n")
    code = text.split('"""', 2)[2].strip()
    return title, words.lstrip("=\n").strip(), code


class Block(NamedTuple):
    """A part of a script, and the text that stands before it."""

    words: str
    code: str


def blocks(code: str) -> list[Block]:
    """The imports, what is computed and the picture, cut at the comments that explain them."""
    lines, tree = code.splitlines(), ast.parse(code).body
    drawing = _drawing(tree)
    while drawing and is_prose(lines[drawing - 1]):
        drawing -= 1
    starts = [k for k, line in enumerate(lines) if is_prose(line) and not is_prose(lines[k - 1])]
    edges = sorted({0, _after_imports(tree), drawing, *starts, len(lines)})
    heads = {drawing: "The picture", 0: ""}
    rest = "What is computed" if drawing else "The rest"
    texts = {a: "\n".join(lines[a:b]).strip() for a, b in pairwise(edges)}
    return [_block(heads.get(start, rest), text) for start, text in texts.items() if text]


def is_prose(line: str) -> bool:
    """Whether a line is a comment at the left margin."""
    return line.startswith("# ")


def _block(head: str, text: str) -> Block:
    lines = text.splitlines()
    comment = list(takewhile(is_prose, lines))
    code = "\n".join(lines[len(comment) :])
    return Block(_words(head, " ".join(line[2:] for line in comment), code), code)


def _after_imports(tree: list[ast.stmt]) -> int:
    """The line behind the last import at the top."""
    imports = [node for node in tree if isinstance(node, ast.Import | ast.ImportFrom | ast.Try)]
    return max((node.end_lineno or 0 for node in imports), default=0)


def _drawing(tree: list[ast.stmt]) -> int:
    """The line before the statement that draws, if it is a block of its own."""
    last = tree[-1]
    return last.lineno - 1 if isinstance(last, ast.With) else 0


def _words(head: str, comment: str, code: str) -> str:
    """The comment or the head, and the public names that the code uses, as links to their pages."""
    used = re.findall(r"\bpenchant\.((?:[a-z]+\.)?\w+)", code)
    names = ", ".join(f"`{name}`" for name in dict.fromkeys(used) if name in targets())
    if comment:
        return f"{comment} (Uses {names}.)" if names else comment
    if not head:
        return ""
    return f"{head}, with {names}:" if names else f"{head}:"


def notebook(script: Path) -> str:
    """The script as a notebook that shows the picture it saves, as it is stored in the docs."""
    title, words, code = parts(script)
    saved = SAVING.search(code)
    if not saved:
        raise ValueError(f"gallery: {script.name} must save its picture as the others do")
    file = saved[1]
    code = SAVING.sub(f"picture.savefig({file})", code)
    if "sys." not in code:
        code = re.sub(r"^import sys\n\n?", "", code)
    show = f"from IPython.display import Image\n\nImage({file})"
    cells = [_text("words", f"# {title}\n\n{words}")]
    for number, block in enumerate(blocks(code)):
        cells += [_text(f"words-{number}", block.words)] if block.words else []
        cells.append(_code(f"code-{number}", block.code))
    cells.append(_code("picture", show, _stored(script)))
    about = {"language_info": {"name": "python"}, "kernelspec": KERNEL}
    return json.dumps(
        {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}, indent=1
    )


KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def _text(name: str, source: str) -> dict[str, object]:
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


def _code(name: str, source: str, outputs: tuple[object, ...] = ()) -> dict[str, object]:
    return {
        **{"cell_type": "code", "id": name, "metadata": {}, "source": source},
        **{"execution_count": None, "outputs": list(outputs)},
    }


def _stored(script: Path) -> tuple[object, ...]:
    """The picture that the docs show of a script, as the output of a cell."""
    png = (ROOT / "docs" / "pictures" / f"{name_of(script)}.png").read_bytes()
    data = {"image/png": base64.b64encode(png).decode()}
    return ({"output_type": "display_data", "data": data, "metadata": {}},)


def pages() -> dict[str, str]:
    """The page of every script, and the overview."""
    every = themes()
    found = {
        f"gallery/{name_of(script)}.md": _page(script, chapter)
        for chapter, own in every.items()
        for script in own
    }
    return found | {"gallery/index.md": _overview(every)}


class Chapter(NamedTuple):
    """A chapter of the theory: a theme of the gallery."""

    title: str
    file: str
    text: str


def chapters() -> list[Chapter]:
    """The chapters of the theory in their order."""
    folder = ROOT / "docs" / "theory"
    index = (folder / "index.md").read_text(encoding="utf-8")
    files = dict.fromkeys(re.findall(r"\]\((\w+\.md)", index))
    texts = {file: (folder / file).read_text(encoding="utf-8") for file in files}
    return [
        Chapter(text.partition("\n")[0].removeprefix("# "), file, text)
        for file, text in texts.items()
    ]


def themes() -> dict[Chapter, list[Path]]:
    """The scripts of every chapter, in the order in which it shows their pictures."""
    left, found = scripts(), {}
    for chapter in chapters():
        places = {script: chapter.text.find(f"gallery/{script.name}") for script in left}
        own = sorted((s for s in left if places[s] >= 0), key=places.__getitem__)
        left = [script for script in left if script not in own]
        found |= {chapter: own} if own else {}
    if left:
        raise ValueError(f"gallery: no chapter of the theory shows {left[0].name}")
    return found


def _seconds(script: Path) -> str:
    """How long the script takes, if its time is known."""
    times = json.loads((ROOT / "docs" / "seconds.json").read_text(encoding="utf-8"))
    took = times.get(name_of(script))
    return "" if took is None else f" · {max(round(took), 1)} s of processor time"


def _page(script: Path, chapter: Chapter) -> str:
    title, words, code = parts(script)
    name = name_of(script)
    code = "\n\n".join(f"{words}\n\n```python\n{part}\n```" for words, part in blocks(code))
    return (
        f"# {title}\n\n{words}\n\n![{title}](../pictures/{name}.png)\n\n"
        f"Theory: [{chapter.title}](../theory/{chapter.file}) · "
        f"{{download}}`Download the script <{script.name}>` · "
        f"{{download}}`Download the notebook <{name}.ipynb>`{_seconds(script)}\n\n{code.strip()}\n"
    )


def _overview(every: dict[Chapter, list[Path]]) -> str:
    head = (
        "# Gallery\n\nEvery picture comes from a short script. Each page has the script and the"
        " same as a notebook with its picture. The themes are the chapters of the theory.\n"
    )
    body = "\n".join(
        f"## {chapter.title}\n\n:::::{{container}} tiles\n{_tiles(own)}\n:::::\n"
        for chapter, own in every.items()
    )
    tree = "\n".join(name_of(script) for own in every.values() for script in own)
    return f"{head}\n{body}\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"


def _tiles(own: list[Path]) -> str:
    tiles = [
        f"[![{parts(script)[0]}](../pictures/{name_of(script)}.png)]({name_of(script)}.md)\n\n"
        f"[{parts(script)[0]}]({name_of(script)}.md)"
        for script in own
    ]
    return "\n".join(f"::::{{container}} tile\n{tile}\n::::" for tile in tiles)


def downloads(folder: Path) -> None:
    """Put the scripts and the notebooks where the pages look for them."""
    for script in scripts():
        shutil.copy(script, folder / script.name)
        (folder / f"{name_of(script)}.ipynb").write_text(notebook(script), encoding="utf-8")
