"""Every public name with the first page that uses it; exits 1 if no page uses one.

    python docs/names.py

A page uses a name where its code reads it from its namespace (`problems.zigzag`) or imports it,
and where a sentence names it in code font; a printed result uses the names of its classes. The
colours and other constants of `lab` and `plotting` are left aside.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from penchant.namespaces import NAMESPACES, public, public_names

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "README.md",
    "docs/start/*.md",
    "docs/tour/*.md",
    "docs/howto/*.md",
    "docs/theory/*.md",
    "docs/scale.md",
    "gallery/*.py",
)
AUTHORS = "CONTRIBUTING.md"  # for the names of lab and plotting, which authors of papers need
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
SPAN = re.compile(r"`([^`\n]+)`")
READ = re.compile(rf"\b(?:penchant|{'|'.join(NAMESPACES)})(?=\.(\w+))")
IMPORT = re.compile(r"^\s*from penchant[\w.]* import (\([^)]*\)|.*)$", re.M)
WORD = re.compile(r"(?<![\w.-])[A-Za-z_]\w*(?![\w=])")


def used_by_code(code: str) -> set[str]:
    """The names that Python code reads from a namespace or imports."""
    imported = (re.findall(r"\w+", names) for names in IMPORT.findall(code))
    return set(READ.findall(code)).union(*imported)


def used_by_page(text: str) -> set[str]:
    """The names that a page of Markdown uses in its blocks of code or names in code font."""
    found: set[str] = set()
    for language, code in BLOCK.findall(text):
        if language == "python":
            found |= used_by_code(code)
        elif language == "text":  # results show the names of their classes
            found |= {word for word in WORD.findall(code) if word[0].isupper()}
    for span in SPAN.findall(BLOCK.sub("", text)):
        if not span.startswith("penchant "):  # a command
            found |= used_by_code(span) | set(WORD.findall(span))
    return found


def pages() -> Iterator[tuple[str, set[str]]]:
    """Every page with the names that it uses, in the order in which a reader meets them."""
    for pattern in (*PAGES, AUTHORS):
        for file in sorted(ROOT.glob(pattern)):
            uses = used_by_code if file.suffix == ".py" else used_by_page
            yield file.relative_to(ROOT).as_posix(), uses(file.read_text(encoding="utf-8"))


def names() -> list[str]:
    """The public names that a page has to use, by their paths."""

    def needed(name: str) -> bool:
        callable_ = inspect.isclass(public(name)) or inspect.isroutine(public(name))
        return callable_ or not _is_for_authors(public_names()[name])

    return sorted((path for name, path in public_names().items() if needed(name)), key=str.lower)


def _is_for_authors(path: str) -> bool:
    return path.startswith(("penchant.lab.", "penchant.plotting."))


def first_pages() -> dict[str, str | None]:
    """Every name with the first page that uses it, None where there is none."""
    found = list(pages())

    def first(path: str) -> str | None:
        name = path.rpartition(".")[2]
        allowed = (page for page in found if page[0] != AUTHORS or _is_for_authors(path))
        return next((page for page, used in allowed if name in used), None)

    return {path: first(path) for path in names()}


def main() -> int:
    found = first_pages()
    for path, page in found.items():
        print(f"{path:50} {page or 'no page'}")
    gaps = [path for path, page in found.items() if page is None]
    print(f"{len(found)} names, {len(gaps)} without a page")
    return 1 if gaps else 0


if __name__ == "__main__":
    sys.exit(main())
