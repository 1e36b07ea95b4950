"""A page for every script of gallery/: its picture as stored, its text, script and notebook."""

import ast
import json
import re
import shutil
from pathlib import Path

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


def notebook(script: Path) -> str:
    """The script as a notebook, which also shows the picture that it saves."""
    title, words, code = parts(script)
    saved = SAVING.search(code)
    if not saved:
        raise ValueError(f"gallery: {script.name} must save its picture as the others do")
    file = saved[1]
    code = SAVING.sub(f"picture.savefig({file})", code)
    if "sys." not in code:
        code = re.sub(r"^import sys\n\n?", "", code)
    show = f"from IPython.display import Image\n\nImage({file})"
    cells = [
        {"cell_type": "markdown", "id": "words", "metadata": {}, "source": f"# {title}\n\n{words}"},
        _code("code", code),
        _code("picture", show),
    ]
    about = {"language_info": {"name": "python"}, "kernelspec": KERNEL}
    return json.dumps(
        {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}, indent=1
    )


KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def _code(name: str, source: str) -> dict[str, object]:
    return {
        **{"cell_type": "code", "id": name, "metadata": {}, "source": source},
        **{"execution_count": None, "outputs": []},
    }


def pages() -> dict[str, str]:
    """The page of every script, and the overview."""
    order = _in_the_order_of_the_theory()
    found = {f"gallery/{name_of(script)}.md": _page(script) for script in order}
    return found | {"gallery/index.md": _overview(order)}


def chapters() -> list[tuple[str, str]]:
    """The chapters of the theory in their order, by the title: each is a theme of the gallery."""
    folder = ROOT / "docs" / "theory"
    index = (folder / "index.md").read_text(encoding="utf-8")
    files = dict.fromkeys(re.findall(r"\]\((\w+\.md)", index))
    texts = [(folder / file).read_text(encoding="utf-8") for file in files]
    return [(text.partition("\n")[0].removeprefix("# "), text) for text in texts]


def _in_the_order_of_the_theory() -> list[Path]:
    theory = "".join(text for _, text in chapters())
    places = {script: theory.find(f"gallery/{script.name}") for script in scripts()}
    return sorted(places, key=lambda script: (places[script] < 0, places[script]))


def _page(script: Path) -> str:
    title, words, code = parts(script)
    name = name_of(script)
    return (
        f"# {title}\n\n{words}\n\n![{title}](../pictures/{name}.png)\n\n"
        f"{{download}}`Download the script <{script.name}>` · "
        f"{{download}}`Download the notebook <{name}.ipynb>`\n\n"
        f"```python\n{code}\n```\n"
    )


def _overview(order: list[Path]) -> str:
    head = (
        "# Gallery\n\nEvery picture comes from a short script. Each page has the script and the"
        " same as a notebook.\n\n:::::{container} tiles\n"
    )
    tiles = [
        f"[![{parts(script)[0]}](../pictures/{name_of(script)}.png)]({name_of(script)}.md)\n\n"
        f"[{parts(script)[0]}]({name_of(script)}.md)"
        for script in order
    ]
    body = "\n".join(f"::::{{container}} tile\n{tile}\n::::" for tile in tiles)
    tree = "\n".join(name_of(script) for script in order)
    return f"{head}{body}\n:::::\n\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"


def downloads(folder: Path) -> None:
    """Put the scripts and the notebooks where the pages look for them."""
    for script in scripts():
        shutil.copy(script, folder / script.name)
        (folder / f"{name_of(script)}.ipynb").write_text(notebook(script), encoding="utf-8")
