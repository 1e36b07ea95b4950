"""The font of formulas: it can set mathematics, holds what formulas need, and comes with pages."""

import asyncio
import base64
import re
import struct
from html import escape

import pytest
from fontTools.ttLib.woff2 import WOFF2DirectoryEntry, woff2DirectorySize

from explore_browser import CHROMIUM, browser
from formula_font import covered, ranges
from penchant.explore.page import template, variables
from penchant.lab import Verdicts
from penchant.lab.report.math_font import FILE, FOLDER, font_face
from penchant.lab.report.page import page
from penchant.lab.report.rendering import environment

MOST = 120_000  # bytes; the report, which holds a third more, is to stay near 5 MB
ITALICS = [*range(0x1D434, 0x1D455), *range(0x1D456, 0x1D468), *range(0x1D6E2, 0x1D71C), 0x210E]


def tables():
    """The tables that the head of the file names, and their sizes; the rest is compressed."""
    with FILE.open("rb") as file:
        signature, count = struct.unpack(">4s8xH", file.read(14))
        assert signature == b"wOF2"
        file.seek(woff2DirectorySize)
        entries = [WOFF2DirectoryEntry() for _ in range(count)]
        for entry in entries:
            entry.fromFile(file)
    return {str(entry.tag): entry.origLength for entry in entries}


def test_the_font_is_small_and_has_the_constants_of_mathematics():
    assert FILE.stat().st_size <= MOST
    assert tables()["MATH"] > 5000
    assert "fpgm" not in tables()  # hints, which were left out


def test_the_licence_lies_beside_the_font():
    licence = (FOLDER / "OFL.txt").read_text(encoding="utf-8")
    assert licence.startswith("Copyright 2001-2021 The STIX Fonts Project Authors")
    assert "SIL OPEN FONT LICENSE Version 1.1" in licence
    assert "SIL Open Font License" in font_face()


def test_a_letter_of_a_formula_is_there_in_its_slanted_form_too():
    """A browser shows <mi>x</mi> as U+1D465."""
    assert set(map(chr, ITALICS)) <= covered()
    assert "\u1234" not in covered()


def test_the_list_of_characters_is_that_of_the_font():
    pytest.importorskip("brotli")
    from fontTools.ttLib import TTFont

    font = TTFont(FILE)
    assert set(map(chr, font.getBestCmap())) == covered()
    names, variants = font.getBestCmap(), font["MATH"].table.MathVariants
    upright = set(variants.VertGlyphCoverage.glyphs)
    assert {names[ord(sign)] for sign in "()[]{}|‖√∑∫⟨⟩"} <= upright


def test_pages_with_formulas_hold_the_font_and_others_do_not():
    (held,) = re.findall(r'url\("data:font/woff2;base64,([^"]*)"\)', page(Verdicts(())))
    assert base64.b64decode(held) == FILE.read_bytes()
    assert "woff2" not in template().render(**variables("x", "x", ()))


def test_a_study_brings_the_font_if_its_title_has_a_formula():
    frame = environment().from_string("{% extends 'study.html' %}{% block body %}{% endblock %}")
    assert "font/woff2" in frame.render(title=r"over $\alpha$")
    assert "font/woff2" not in frame.render(title="over alpha")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
def test_a_browser_takes_every_character_from_the_font(tmp_path):
    """It says which fonts it used: this one only, and another one for a character left out.

    A character that no other font of the machine has would pass: its box is from this font too.
    """
    signs = "".join(chr(a) for low, high in ranges() for a in range(low, high + 1))
    lines = "".join(f"<p>{escape(text)}</p>" for text in (signs, signs + "ж"))
    file = tmp_path / "signs.html"
    style = f"{font_face()} p {{ font: 1rem 'STIX Two Math'; }}"
    file.write_text(
        f"<!doctype html><meta charset='utf-8'><style>{style}</style>"
        f"<body><main><h1>Signs</h1>{lines}</main>",
        encoding="utf-8",
    )

    async def visit():
        async with browser(tmp_path / "profile") as tab:
            await tab.open(file.as_uri(), 1280)
            await tab.run("document.fonts.ready.then(() => 0)")
            await tab.send("DOM.enable")
            await tab.send("CSS.enable")
            root = (await tab.send("DOM.getDocument"))["root"]["nodeId"]
            found = await tab.send("DOM.querySelectorAll", nodeId=root, selector="p")
            used = [
                (await tab.send("CSS.getPlatformFontsForNode", nodeId=node))["fonts"]
                for node in found["nodeIds"]
            ]
            return used, tab.requests

    (own, mixed), requests = asyncio.run(visit())
    assert [font["isCustomFont"] for font in own] == [True]
    assert sorted(font["isCustomFont"] for font in mixed) == [False, True]
    assert all(url.startswith(("file:", "data:")) for url in requests)
