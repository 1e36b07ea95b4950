"""The source of the site as one folder of Markdown: pages of docs/, and pages made from the code.

A link between two files of the repository becomes a link between their pages; a link to a file
that has no page becomes its name.
"""

import os
import re
import shutil
from pathlib import Path

import benchmark_pages
import gallery_pages
import paper_pages
import reference_pages

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PAGES = {  # file of the repository -> page of the site, for those that keep their text
    "docs/website/index.md": "index.md",
    "docs/start/index.md": "start/index.md",
    "docs/tour/index.md": "tour/index.md",
    "docs/howto/index.md": "howto/index.md",
    "docs/scale.md": "howto/scale.md",
    "docs/combinations.md": "howto/combinations.md",
    "docs/theory/index.md": "theory/index.md",
    "docs/diagrams.md": "theory/diagrams.md",
    "docs/coverage.md": "papers/coverage.md",
    "docs/robustness.md": "benchmarks/robustness.md",
    "benchmarks/README.md": "benchmarks/scripts.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
MADE = {  # files of the repository whose page is made from the same data
    "docs/papers.md": "papers/index.md",
    "benchmarks/RESULTS.md": "benchmarks/index.md",
    "README.md": "index.md",
    "gallery": "gallery/index.md",
    "docs/reference/index.md": "reference/index.md",
}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def pages() -> dict[str, str]:
    """Every file of the repository that has a page, and the page."""
    found = PAGES | MADE
    for folder in ("start", "tour", "howto", "theory"):
        for file in sorted((ROOT / "docs" / folder).glob("*.md")):
            found[f"docs/{folder}/{file.name}"] = f"{folder}/{file.name}"
    for script in gallery_pages.scripts():
        found[f"gallery/{script.name}"] = f"gallery/{gallery_pages.name_of(script)}.md"
    return found


def assemble(folder: Path, report: Path) -> Path:
    """`folder`, with the source of the whole site in it and nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(ROOT / "docs" / "pictures", folder / "pictures")
    known = pages()
    for file, page in known.items():
        if file in MADE or page.startswith("gallery/"):
            continue
        text = relinked((ROOT / file).read_text(encoding="utf-8"), file, page, known)
        write(folder / page, text + (tree(text) if page.endswith("/index.md") else ""))
    texts = (
        gallery_pages.pages()
        | paper_pages.pages(report, folder / "papers")
        | benchmark_pages.pages()
    )
    for page, text in (texts | reference_pages.pages()).items():
        write(folder / page, text)
    gallery_pages.downloads(folder / "gallery")
    benchmark_pages.chart().savefig(folder / "benchmarks" / "speed.png")
    return folder


def tree(text: str) -> str:
    """The pages of its section that an overview links to, in their order, for the navigation."""
    names = dict.fromkeys(link[3] for link in LINK.finditer(text) if not link[1])
    own = [name.removesuffix(".md") for name in names if re.fullmatch(r"[\w-]+\.md", name)]
    lines = "\n".join(own)
    return f"\n```{{toctree}}\n:hidden:\n\n{lines}\n```\n"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def relinked(text: str, file: str, page: str, known: dict[str, str]) -> str:
    """The text of `file` with its links as they are on `page`; code blocks stay as they are."""

    def link(found: re.Match[str]) -> str:
        sign, words, target = found.groups()
        path, mark, anchor = target.partition("#")
        if "://" in target or not path:
            return found[0]
        there = os.path.normpath(os.path.join(os.path.dirname(file), path))
        if there in known:
            there = known[there]
        elif there.startswith("docs/pictures/"):
            there = there.removeprefix("docs/")
        else:
            return words
        relative = os.path.relpath(there, os.path.dirname(page) or ".")
        return f"{sign}[{words}]({relative}{mark}{anchor})"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    return "".join(part if k % 2 else LINK.sub(link, part) for k, part in enumerate(parts))
