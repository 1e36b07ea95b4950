"""llms.txt: every page of the site that explains something, with its first sentence, as a list."""

from __future__ import annotations

import re
from pathlib import Path

PARTS = {"start": "Start", "howto": "How-to", "tour": "Tour", "theory": "Theory"}
ABOUT = "A Python laboratory for the implicit bias of gradient descent: what training prefers."
LONGEST = 160  # letters of what is said about a page


def llms(source: Path) -> str:
    """The text for a site whose Markdown pages are in `source`."""
    lines = ["# penchant", "", f"> {ABOUT}"]
    for folder, title in PARTS.items():
        lines += ["", f"## {title}", ""]
        for file in sorted((source / folder).glob("*.md")):
            text = file.read_text(encoding="utf-8")
            name = text.partition("\n")[0].removeprefix("# ")
            lines.append(f"- [{name}]({folder}/{file.stem}.html): {_about(text)}")
    return "\n".join(lines) + "\n"


def _about(text: str) -> str:
    """The first sentence of a page, without links."""
    paragraphs = [part.strip() for part in text.split("\n\n")[1:]]
    plain = next((part for part in paragraphs if re.match(r"[A-Z*`$]", part)), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(plain.split())).replace("**", "")
    sentence = re.split(r"(?<=[.?!:])\s", plain)[0]
    return sentence if len(sentence) <= LONGEST else sentence[:LONGEST].rsplit(" ", 1)[0] + " …"
