"""The report: one well-formed page that loads nothing, escapes everything, and files on disk."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import os
import re
import xml.etree.ElementTree as xml
from dataclasses import asdict
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError

import little_papers
from explore_browser import CHROMIUM, browser
from html_pages import parsed, words
from penchant.lab import Check, Evidence, Plot, Series, Verdict, Verdicts, door_as, papers, within
from penchant.lab.evidence import verdict_json
from penchant.lab.evidence.verdict_json import read_verdicts
from penchant.lab.report.markup import Markup
from penchant.lab.report.page import page
from penchant.lab.report.rendering import environment
from penchant.lab.report.section import anchor, strain, track_position, tracks
from penchant.lab.report.write import write_report
from penchant.lab.verification import gather_verdicts
from penchant.lab.writing import refuse_unwritable, write_text

SVG = "{http://www.w3.org/2000/svg}"
NOW = datetime(2024, 2, 29, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def verdicts():
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("default")  # one little claim warns on purpose
        return gather_verdicts(little_papers.library.experiments(), jobs=1)


# --- the page ------------------------------------------------------------------------------


def claim_of(tree, id):
    """The part of the page that a claim opens to, with its line above it."""
    return next(
        part for part in tree.iter("details") if part.find(f"./div[@id='claim-{id}']") is not None
    )


def test_the_page_shows_every_part_of_a_claim(verdicts):
    tree = parsed(page(verdicts, NOW))
    shown = words(claim_of(tree, "A-MEAN"))
    verdict = verdicts["A-MEAN"]
    for part in (verdict.statement, verdict.place, verdict.ran, verdict.correction, verdict.reason):
        assert part in shown
    for part in ("✎holds as corrected", "199 > 0", "0 ≤ 0", "n2/2", "printed formula"):
        assert part in shown
    assert "penchant verify A-MEAN" in shown
    first = words(claim_of(tree, "A-SUM"))
    for part in ("the terms fall", "✓ met", "✓ rejected: 0.4112 > 0.0001", "one over the number"):
        assert part in first
    failing = words(claim_of(tree, "B-FALSE"))
    assert "Counterexample" in failing
    assert "✗ misses: 5 > 0" in failing
    assert "There is no control, so the status cannot be" in words(claim_of(tree, "B-STOP"))


KINDS = ["every", "holds", "proof", "corrected", "fails", "inconclusive"]


def test_the_tiles_count_the_claims_and_are_links_that_filter(verdicts):
    text = page(verdicts, NOW)
    tree = parsed(text)
    tiles = tree.findall(".//ul[@class='tiles']/li")
    assert [words(tile) for tile in tiles] == [
        *("∗5all claims", "✓1holds", "†0holds, proof corrected"),
        *("✎1holds as corrected", "✗1fails", "?2inconclusive"),
    ]
    assert [tile.get("id") for tile in tiles] == [f"only-{name}" for name in KINDS]
    assert [tile.find("a").get("href") for tile in tiles] == [f"#only-{name}" for name in KINDS]
    for name in KINDS[1:]:  # the rule that hides the others, also without a script
        hides = f':root:has(#only-{name}:target) :is(.claim:not([data-status="{name}"])'
        assert hides in text
    claims = tree.findall(".//details[@class='claim']")
    statuses = [part.get("data-status") for part in claims]
    assert statuses == ["corrected", "holds", "fails", "inconclusive", "inconclusive"]


def test_claims_are_grouped_by_source_and_lie_closed(verdicts):
    tree = parsed(page(verdicts, NOW))
    groups = {part.get("id"): part for part in tree.findall(".//section[@class='source']")}
    assert list(groups) == ["source-A", "source-B"]
    assert [len(group.findall("details")) for group in groups.values()] == [2, 3]
    links = [link.get("href") for link in tree.findall(".//nav/a")]
    assert links == ["#source-A", "#source-B", "#corrections"]
    assert all(part.get("open") is None for part in tree.iter("details"))
    few = parsed(page(verdicts[:2], NOW))  # of so few one wants to see the evidence
    assert all(part.get("open") for part in few.findall(".//details[@class='claim']"))
    footer = words(tree.find(".//footer"))
    assert "2024-02-29 12:00 UTC" in footer
    assert f"numpy {np.__version__}" in footer


def named(id, place):
    evidence = Evidence("r", {"c": within(0.5, tolerance=1)}, controls={"w": 3.0})
    return Verdict(id, f"statement of {id}", place, evidence)


def test_the_page_names_its_papers_and_the_printed_place_of_every_claim():
    made = (named("W-T1", "section 4, Theorem 1"), named("L-clock", "ours; it joins L to W"))
    tree = parsed(page(Verdicts((*made, named("N-LU", "w(lambda)"))), NOW))
    groups = tree.findall(".//section[@class='source']")
    assert [group.get("id") for group in groups] == ["source-W", "source-L", "source-N"]
    for group, source in zip(groups, (papers()[0], papers()[2], papers()[3]), strict=True):
        assert words(group.find("h2")) == f"{source.letters} {source.title}"
        about = words(group.find("p[@class='authors']"))
        assert (
            about == f"{', '.join(source.authors)}. {source.year}, {source.form}. {source.url[8:]}"
        )
    lines = [words(part.find("summary")) for part in tree.iter("details")]
    assert "Woodworth et al. 2020, section 4, Theorem 1" in lines[0]
    assert "ours; it joins L to W" in lines[1]
    assert "Lyu" not in lines[1]  # who did not write it
    assert "Notsawo et al. 2025, w(lambda)" in lines[2]
    assert all("0.5 ≤ 1c" in line and "quick, 0.0 s" in line for line in lines)


def test_the_page_loads_nothing(verdicts):
    text = page(verdicts, NOW)
    tree = parsed(text)
    tags = {element.tag.removeprefix(SVG) for element in tree.iter()}
    assert not tags & {"link", "img", "iframe", "object", "embed", "audio", "video"}
    for element in tree.iter():
        for name, value in element.attrib.items():
            if name.endswith(("href", "src")):
                assert value.startswith(("#", "data:")), f"{element.tag} {name}={value}"
    (script,) = tree.iter("script")
    assert not re.search(r"fetch|import|XMLHttp|WebSocket|src|http", script.text)
    assert "@import" not in text
    assert set(re.findall(r"url\(\"?(data:|.)", text)) <= {"#", "data:"}  # the second: the font
    addresses = set(re.findall(r"https?://[^\"'\s<]+", text))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


def test_every_paper_says_where_it_is_to_be_read():
    """By links, which a page does not load."""
    from penchant.lab.report.section import address, module_of
    from penchant_papers.papers import papers as ours

    for paper in ours:
        assert paper.url.startswith("https://arxiv.org/abs/") == bool(paper.authors), paper.title
        for id, module in paper.statements.items():
            verdict = Verdict(id, "s", "p", Evidence(ran="nothing"))
            assert address(verdict) == paper.url
            assert module_of(verdict) == f"{paper.package}.{module}"
            text = page(Verdicts((verdict,)))
            links = re.findall(r'<a href="(https?://[^"]+)"', text)
            assert set(links) == ({paper.url} if paper.url else set())
            assert len(re.findall(r"https?://", text)) - len(links) <= 2 + (paper.url in text)
            break


def test_the_corrections_are_one_list(verdicts):
    tree = parsed(page(verdicts, NOW))
    (group,) = [part for part in tree.iter("details") if part.get("id") == "corrections"]
    corrected = [verdict for verdict in verdicts if verdict.correction]
    assert corrected
    links = [link.get("href") for link in group.iter("a")]
    assert links == [f"#{anchor(verdict)}" for verdict in corrected]
    for verdict in corrected:
        assert words(group).count(verdict.id) >= 1
    plain = Verdicts(tuple(verdict for verdict in verdicts if not verdict.correction))
    assert 'id="corrections"' not in page(plain, NOW)


def test_a_picture_is_small_and_has_the_colours_of_the_figure():
    """Against matplotlib's own PNG: fewer bytes, and no pixel far from its colour."""
    import base64
    import io

    import matplotlib.pyplot as plt
    from PIL import Image

    from penchant.lab.pictures import DPI, small_image
    from penchant.lab.report.section import image_type
    from penchant.plotting.mplstyle import styled

    with styled():
        figure, axes = plt.subplots(1, 2, figsize=(8, 4))
        for k in range(5):
            axes[0].plot(np.sin(np.arange(50) / (3 + k)), label=f"line {k}")
        axes[0].legend()
        axes[1].imshow(np.random.default_rng(0).normal(size=(20, 20)))
        small, plain = small_image(figure), io.BytesIO()
        figure.savefig(plain, format="png", dpi=DPI)
    plt.close(figure)
    seen = np.asarray(Image.open(io.BytesIO(small)).convert("RGB"), dtype=float)
    true = np.asarray(Image.open(plain).convert("RGB"), dtype=float)
    assert seen.shape == true.shape
    assert np.abs(seen - true).mean() < 2.0  # of 255
    assert len(small) < 0.5 * len(plain.getvalue())
    assert image_type(base64.b64encode(small).decode()) == "webp"
    assert image_type(base64.b64encode(plain.getvalue()).decode()) == "png"


OPEN = (
    "Array.from(document.querySelectorAll('.evidence'))"
    ".filter(part => part.checkVisibility()).map(part => part.id)"
)
LISTED = (
    "Array.from(document.querySelectorAll('.claim > summary b'))"
    ".filter(name => name.checkVisibility()).map(name => name.textContent)"
)
SEARCH = (
    "(() => {{ const box = document.getElementById('search'); box.value = '{}';"
    " box.dispatchEvent(new Event('input')); return {}; }})()"
)


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")
def test_the_page_filters_and_opens_in_a_browser(verdicts, tmp_path):
    pytest.importorskip("tornado")
    everything = page(verdicts, NOW)
    (tmp_path / "index.html").write_text(everything, encoding="utf-8")
    plain = re.sub(r"<script>.*?</script>", "", everything, flags=re.DOTALL)
    (tmp_path / "plain.html").write_text(plain, encoding="utf-8")
    all_ids = [verdict.id for verdict in verdicts]

    async def expect(tab, script, value):
        text = json.dumps(value, separators=(",", ":"))
        await tab.until(f"JSON.stringify({script}) === {json.dumps(text)}", seconds=10)

    async def go(tab, address):
        await tab.send("Page.navigate", url=address)
        await expect(tab, "[document.readyState, location.href]", ["complete", address])

    async def visit():
        async with browser(tmp_path / "profile") as tab:
            for name in ("index.html", "plain.html"):
                await go(tab, (tmp_path / name).as_uri())
                await expect(tab, LISTED, all_ids)
                await expect(tab, OPEN, [])
                await tab.run("location.hash = '#only-inconclusive'")
                await expect(tab, LISTED, ["B-STOP", "B-VAGUE"])
                await tab.run("location.hash = '#only-every'")
                await expect(tab, LISTED, all_ids)
            await go(tab, (tmp_path / "index.html").as_uri() + "#claim-B-FALSE")
            await expect(tab, OPEN, ["claim-B-FALSE"])
            await expect(tab, SEARCH.format("PRIME square", LISTED), ["B-FALSE"])
            await expect(tab, SEARCH.format("no such words", LISTED), [])
            await expect(tab, "document.getElementById('nothing').checkVisibility()", True)
            await expect(tab, SEARCH.format("", LISTED), all_ids)
            await tab.run("document.getElementById('open').click()")
            await expect(tab, f"{OPEN}.length", len(all_ids))
            await tab.send("Network.setBlockedURLs", urls=["http://*", "https://*"])
            for width in (1280, 390):
                await tab.resize(width)
                wide = await tab.run("document.documentElement.scrollWidth")
                assert wide <= width, f"{wide} wide at {width}"
            assert all(url.startswith(("file:", "data:", "about:")) for url in tab.requests)
            assert tab.complaints == []

    asyncio.run(visit())


def test_ids_are_unique_and_references_find_them(verdicts):
    text = page(verdicts, NOW)
    tree = parsed(text)
    ids = [element.get("id") for element in tree.iter() if element.get("id")]
    assert len(set(ids)) == len(ids)
    assert {anchor(verdict) for verdict in verdicts} < set(ids)
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', text))
    assert {a or b for a, b in used} <= set(ids)


def test_colours_are_defined_in_light_and_dark(verdicts):
    text = page(verdicts, NOW)
    assert "prefers-color-scheme: dark" in text
    defined = set(re.findall(r"(--[\w-]+):", text))
    assert set(re.findall(r"var\((--[\w-]+)\)", text)) <= defined


hostile = st.text(alphabet=st.sampled_from("<>&\"'$_{}\\[]ab é≤"), min_size=1, max_size=9)


# Shrinking would redraw the page thousands of times, and the page shows its culprit anyway.
@settings(deadline=None, derandomize=True, max_examples=15, phases=[Phase.generate])
@given(hostile, hostile, hostile)
def test_everything_is_escaped(one, two, three):
    plot = Plot(one, two, three, [Series(two, [1, 2], [1, 2]), Series(one, [1], [1])], caption=one)
    found = Evidence(
        ran=two,
        checks={one: within(0.5, tolerance=1)},
        premises={three: (True, one)},
        controls={two: 3.0},
        counterexample={one: two},
        findings=[three],
        plots=[plot],
    )
    text = page(Verdicts((Verdict(f"T-{one}", one, two, found),), {one: two}), NOW)
    tree = parsed(text)
    assert words(tree.find(".//span[@class='statement']")) == " ".join(one.split())


@pytest.mark.parametrize("wrong", ["<script>alert(1)</script>", "a & b", '" onload="x', "]]>"])
def test_a_text_is_escaped_unless_it_is_markup(wrong):
    paragraph = environment().from_string('<p title="{{ text }}">{{ text }}</p>')
    tree = xml.fromstring(paragraph.render(text=wrong))
    assert (tree.text, tree.get("title")) == (wrong, wrong)
    assert list(tree) == []
    plain = environment().from_string("<p>{{ text }}</p>")
    assert list(xml.fromstring(plain.render(text=Markup("<i>x</i>")))) != []
    with pytest.raises(UndefinedError, match="'text' is undefined"):
        plain.render(other=wrong)


# --- bars against the tolerance -------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "used"),
    [
        (Check("c", 1e-3, tolerance=1e-2), 0.1),
        (Check("c", 5.0, predicted=4.0, tolerance=0.5), 2.0),
        (Check("c", 3.0, predicted=4.0, kind="at most"), 0.75),
        (Check("c", 3.0, predicted=4.0, kind="at least"), 4 / 3),
        (Check("c", 3.0, predicted=4.0, tolerance=2.0, kind="at least"), 2 / 3),
        (Check("c", 3.0), math.nan),
        (Check("c", -1.0, predicted=4.0, kind="at most"), math.nan),
        (Check("c", math.nan, tolerance=1.0), math.nan),
    ],
)
def test_strain_is_the_share_of_the_tolerance_used(check, used):
    assert strain(check) == pytest.approx(used, nan_ok=True)


@settings(deadline=None, derandomize=True)
@given(st.floats(0, 1e12), st.floats(1e-12, 1e12))
def test_the_gauge_puts_what_passes_on_the_left(measured, tolerance):
    check = Check("c", measured, tolerance=tolerance)
    assert 0 <= track_position(check) <= 1
    assert (track_position(check) <= 0.5) == check.passes


def test_the_bars_are_left_out_where_nothing_can_be_placed():
    assert tracks(Evidence("", {"c": within(1.0)}, controls={"w": 2.0})) == []
    assert [t.position for t in tracks(Evidence("", {"c": within(math.inf, tolerance=1.0)}))] == [1]


# --- files ---------------------------------------------------------------------------------


def test_the_report_is_written_and_read_back(verdicts, tmp_path):
    html, json = write_report(verdicts, tmp_path / "deep" / "report")
    assert sorted(path.name for path in html.parent.iterdir()) == ["index.html", "verdicts.json"]
    assert str(asdict(read_verdicts(json))) == str(asdict(verdicts))
    parsed(html.read_text(encoding="utf-8"))


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, monkeypatch):
    file = tmp_path / "index.html"
    write_text(file, "old")

    def fails(*paths):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match="disk full"):
        write_text(file, "new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_page_that_cannot_be_drawn_leaves_no_file(verdicts, tmp_path, monkeypatch):
    import penchant.lab.report.write as module

    def fails(found):
        raise ValueError("no page")

    monkeypatch.setattr(module, "page", fails)
    with pytest.raises(ValueError, match="no page"):
        write_report(verdicts, tmp_path / "report")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_refused_early(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file" / "deep"):
        with pytest.raises(ValueError, match=r"verify: .*must be a directory"):
            door_as("verify")(refuse_unwritable)(folder)
    refuse_unwritable(tmp_path / "new" / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_that_is_not_text_is_refused_by_name(tmp_path):
    (tmp_path / "x.json").write_bytes(b"\x89HDF\r\n\xff\xfe")
    with pytest.raises(ValueError, match=r"x\.json is not a text file"):
        read_verdicts(tmp_path / "x.json")


def test_the_page_shows_the_picture_of_a_verdict(verdicts):
    text = page(Verdicts((dataclasses.replace(verdicts["A-SUM"], picture="iVBORw0KGgo="),)))
    assert 'src="data:image/png;base64,iVBORw0KGgo="' in text
    assert "Error of the partial sums" in text  # in words, for those who do not see it
    assert "data:image/png" not in page(Verdicts((verdicts["A-SUM"],)))


def test_a_picture_that_is_no_base64_is_refused(verdicts):
    odd = Verdicts((dataclasses.replace(verdicts["A-SUM"], picture='" onerror="alert(1)'),))
    with pytest.raises(ValueError, match="damaged verdict file"):
        verdict_json.loads(verdict_json.dumps(odd))


@pytest.mark.parametrize("field", ["ran", "correction"])
def test_a_sentence_that_is_no_text_is_refused(verdicts, field):
    """A number in place of a text got as far as the page, and ended it with a traceback."""
    verdict = verdicts["A-SUM"]
    odd = dataclasses.replace(verdict.evidence)
    object.__setattr__(odd, field, 7.0)
    with pytest.raises(ValueError, match="damaged verdict file"):
        verdict_json.loads(
            verdict_json.dumps(Verdicts((dataclasses.replace(verdict, evidence=odd),)))
        )
