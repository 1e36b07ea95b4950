"""The site: a page for every public name, every script and every statement, and what it shows."""

import asyncio
import base64
import importlib
import inspect
import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from formula_font import covered
from penchant.lab import all_claims, papers
from penchant.mathematics import FORMULA, mathml
from penchant.namespaces import public, public_names

ROOT = Path(__file__).resolve().parents[2]
WEBSITE = ROOT / "docs" / "website"
MODULES = (
    *("assemble", "gallery_pages", "paper_pages", "reference_pages"),
    "benchmark_pages",
    "llms",
)
WIDTHS = (1280, 390)
SOME = ("reference/index", "reference/penchant.train", "reference/penchant.DiagonalNet")


@pytest.fixture(scope="module")
def site():
    """The modules that make the pages; none of them needs Sphinx."""
    sys.path.insert(0, str(WEBSITE))
    try:
        yield {name: importlib.import_module(name) for name in MODULES}
    finally:
        sys.path.remove(str(WEBSITE))


@pytest.fixture(scope="module")
def source(site, tmp_path_factory):
    """The source of the whole site, made without a report."""
    folder = tmp_path_factory.mktemp("site") / "source"
    return site["assemble"].assemble(folder, folder / "none")


def test_every_public_name_is_listed_for_its_page(site, source):
    """autosummary makes the page of a listed name; that its example runs is tested elsewhere."""
    pages = site["reference_pages"]
    overview = (source / "reference" / "index.md").read_text()
    every = [full for own in pages.groups().values() for full in own]
    assert len({*every}) == len(every)
    named = {full.rpartition(".")[2] for full in every}
    assert {name for name in public_names() if inspect.isroutine(public(name))} <= named
    for namespace, names in pages.groups().items():
        page = (source / "reference" / f"{namespace}.rst").read_text()
        assert f"{{doc}}`{namespace}`" in overview
        for full in names:
            assert f"   ~{full}\n" in page
            assert f"{{py:obj}}`~{full}`" in overview


def test_the_pages_that_use_a_name_are_found(site):
    uses = site["reference_pages"].uses(site["assemble"].pages())
    assert "gallery/weight_decay" in uses["penchant.forecast"]
    assert "gallery/weight_decay" not in uses["penchant.watch.watch"]


def test_every_statement_has_its_verdict_file_and_commands(site, source):
    statuses = {row.id: row.status for row in site["paper_pages"].COVERAGE["rows"]()}
    texts = {file.stem: file.read_text() for file in (source / "papers").glob("*.md")}
    printed = texts.pop("coverage")
    assert all(f"\n## {paper.short}\n" in printed for paper in papers() if paper.authors)
    assert "(coverage.md)" in texts["index"]
    parts = {}
    for text in texts.values():
        for part in text.split("\n## ")[1:]:
            parts[part.split("\n")[0]] = part
    assert {*parts} == {*all_claims().ids}
    for id, part in parts.items():
        assert f"*{statuses[id]}*" in part
        assert f"`penchant verify {id}`" in part
        (file,) = [line.split("`")[1] for line in part.splitlines() if line.startswith("- File")]
        assert (ROOT / file).is_file()
    assert "built without a report" in texts["index"]


def test_a_report_that_contradicts_the_rows_is_refused(site, tmp_path):
    from penchant.lab import Evidence, Verdict, Verdicts, within
    from penchant.lab.report.write import write_report

    claim = all_claims()["W-L7"]
    evidence = Evidence("a run", {"c": within(2.0, tolerance=1)})
    verdict = Verdict(claim.id, claim.statement, claim.place, evidence)
    write_report(Verdicts((verdict,)), tmp_path)
    with pytest.raises(SystemExit, match=r"W-L7 fails in .* and holds, proof corrected on record"):
        site["paper_pages"].pages(tmp_path, tmp_path / "pictures")


def test_every_script_has_a_page_and_a_notebook_that_runs(site, source, tmp_path, monkeypatch):
    pages = site["gallery_pages"]
    for script in pages.scripts():
        name = pages.name_of(script)
        text = (source / "gallery" / f"{name}.md").read_text()
        assert f"../pictures/{name}.png" in text
        timed = len(re.findall(r" · \d+ s of processor time$", text, flags=re.M))
        assert timed == (name in json.loads((ROOT / "docs" / "seconds.json").read_text()))
        book = json.loads((source / "gallery" / f"{name}.ipynb").read_text())
        codes = [cell["source"] for cell in book["cells"] if cell["cell_type"] == "code"]
        assert "sys.argv" not in codes[0]
        assert ("sys." in codes[0]) == ("import sys" in codes[0])
        compile("\n".join(codes), name, "exec")
        (output,) = [o for cell in book["cells"] for o in cell.get("outputs", ())]
        stored = ROOT / "docs" / "pictures" / f"{name}.png"
        assert base64.b64decode(output["data"]["image/png"]) == stored.read_bytes()
    monkeypatch.chdir(tmp_path)
    book = json.loads((source / "gallery" / "from_l2_to_l1.ipynb").read_text())
    *codes, show = [cell["source"] for cell in book["cells"] if cell["cell_type"] == "code"]
    exec("\n".join(codes), {})
    assert [file.name for file in tmp_path.iterdir()] == ["from_l2_to_l1.png"]
    assert 'Image("from_l2_to_l1.png")' in show


def test_a_script_is_cut_where_the_imports_end_and_where_it_draws(site):
    pages = site["gallery_pages"]
    for script in pages.scripts():
        code = pages.parts(script)[2]
        parts = pages.blocks(code)
        kept = [line for part in parts for line in part.code.splitlines() if line]
        lines = [line for line in code.splitlines() if line]
        assert kept == [line for line in lines if not line.startswith("# ")], script.name
        told = " ".join(line[2:] for line in lines if line.startswith("# "))
        assert set(told.split()) <= set(" ".join(part.words for part in parts).split())
        assert 2 <= len(parts) <= 6
    last = pages.blocks(pages.parts(ROOT / "gallery" / "plot_growth_times.py")[2])
    assert [part.words.partition(",")[0] for part in last] == [
        "",
        "What is computed",
        "The picture",
    ]
    assert "`solvers.saddles`" in last[1].words
    assert last[2].code.startswith("with styled():")


def test_a_comment_at_the_margin_is_the_text_before_its_code(site):
    code = """import penchant

# One start,
# two rates.
net = penchant.DiagonalNet(depth=2)  # a comment beside code stays there
rate = 1

# The picture has one line.
with styled():
    # and this one too
    draw(net)"""
    blocks = site["gallery_pages"].blocks(code)
    assert [part.words for part in blocks] == [
        "",
        "One start, two rates. (Uses `DiagonalNet`.)",
        "The picture has one line.",
    ]
    assert blocks[1].code.endswith("stays there\nrate = 1")
    assert blocks[2].code.startswith("with styled():\n    # and this one too")


def test_the_gallery_has_the_themes_of_the_theory(site, source):
    text = (source / "gallery" / "index.md").read_text()
    themes = site["gallery_pages"].themes()
    assert re.findall("^## (.+)$", text, flags=re.M) == [chapter.title for chapter in themes]
    assert sorted(s for own in themes.values() for s in own) == site["gallery_pages"].scripts()


def test_every_page_that_explains_something_is_in_llms_txt(site, source):
    lines = site["llms"].llms(source).splitlines()
    assert lines[0] == "# penchant"
    entries = [
        re.fullmatch(r"- \[(.+)\]\((.+)\.html\): (.+)", line) for line in lines if "- [" in line
    ]
    assert len(entries) > 30
    for entry in entries:
        text = (source / f"{entry[2]}.md").read_text()
        assert text.startswith(f"# {entry[1]}\n")
        assert entry[3].removesuffix(" …")[:15].strip("*") in text.replace("**", "")


def test_links_between_files_become_links_between_pages(site):
    known = {"docs/theory.md": "theory/index.md", "gallery/plot_a.py": "gallery/a.md"}
    relinked = site["assemble"].relinked
    text = "[a](../gallery/plot_a.py#x) ![p](pictures/p.png) [w](https://a.b) [`f`](../src/f.py)"
    assert relinked(text, "docs/theory.md", "theory/index.md", known) == (
        "[a](../gallery/a.md#x) ![p](../pictures/p.png) [w](https://a.b) `f`"
    )
    code = "```python\n[a](../gallery/plot_a.py)\n```"
    assert relinked(code, "docs/theory.md", "theory/index.md", known) == code


def test_every_formula_of_the_docs_is_shown():
    """Blocks and formulas within sentences; a command that is not known would stay as it is."""
    files = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    seen = 0
    for file in files:
        text = re.sub(r"```.*?```|`[^`]*`", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        blocks = re.findall(r"\$\$(.+?)\$\$", text, flags=re.DOTALL)
        inline = FORMULA.findall(re.sub(r"\$\$.+?\$\$", "", text, flags=re.DOTALL))
        for formula in (*blocks, *inline):
            shown = mathml(formula.strip())
            assert "\\" not in shown, (file.name, formula)
            assert set(unescape(re.sub("<[^>]*>", "", shown))) <= covered(), (file.name, formula)
        seen += len(blocks) + len(inline)
    assert seen > 1000


def test_the_speed_in_the_readme_is_that_of_the_results(site):
    readme = (ROOT / "README.md").read_text()
    assert site["benchmark_pages"].replaced(readme) == readme, (
        "run python docs/website/benchmark_pages.py"
    )
    assert site["benchmark_pages"].replaced(readme.replace("times", "time")) != readme.replace(
        "times", "time"
    )


def test_the_chart_of_the_benchmarks_has_the_ratios_of_the_results(site, source):
    pages = site["benchmark_pages"]
    races = dict(pages.races(pages.results()))
    assert len(races) >= 10
    assert races["heatmap: descent (whole map)"] > 1000
    assert "studies: overhead of a tiny cell" not in races
    bars = [bar.get_width() for bar in pages.chart().axes[0].patches]
    assert bars == sorted(races.values(), reverse=True)
    assert (source / "benchmarks" / "speed.png").is_file()
    assert "](speed.png)" in (source / "benchmarks" / "index.md").read_text()


# --- built, and in a browser ---------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder of the built site."""
    pytest.importorskip("sphinx", reason="the extra site is not installed")
    folder = tmp_path_factory.mktemp("built")
    command = [sys.executable, str(WEBSITE), str(folder), str(folder / "none")]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
    return folder / "html"


@pytest.mark.slow
def test_every_listed_name_has_its_page(site, built):
    files = {file.stem.removesuffix("-class") for file in (built / "reference").glob("*.html")}
    assert {full for own in site["reference_pages"].groups().values() for full in own} <= files
    page = (built / "reference" / "penchant.forecast.html").read_text()
    assert "Used in" in page
    assert "gallery/weight_decay.html" in page


@pytest.mark.slow
def test_pages_ask_for_nothing_from_elsewhere(built):
    outside = re.compile(r'<(?:script|link|img)[^>]* (?:src|href)="(?:https?:)?//[^"]*"')
    assert outside.findall('<script defer src="https://example.org/a.js">')
    pages = list(built.rglob("*.html"))
    assert len(pages) > len(public_names())
    for file in pages:
        assert not outside.findall(file.read_text()), file.name


@pytest.mark.slow
def test_every_page_in_a_browser_without_a_network(built, tmp_path):
    """Of the reference three: its pages are alike, and there are hundreds."""
    pytest.importorskip("tornado")
    from explore_browser import CHROMIUM, browser

    if not CHROMIUM:
        pytest.skip("no chromium here")

    every = sorted(str(file.relative_to(built))[: -len(".html")] for file in built.rglob("*.html"))
    shown = [name for name in every if not name.startswith(("reference/", "_"))] + [*SOME]
    assert len(shown) > 80

    async def visit():
        async with browser(tmp_path / "profile") as page:
            await page.send("Network.setBlockedURLs", urls=["http://*", "https://*"])
            for name in shown:
                for width in WIDTHS:
                    await page.open((built / f"{name}.html").as_uri(), width)
                    wide = await page.run("document.documentElement.scrollWidth")
                    assert wide <= width, f"{name} is {wide} wide at {width}"
            await page.open((built / "start" / "index.html").as_uri(), 1280)
            blocks = await page.run("document.querySelectorAll('.highlight-python pre').length")
            copies = "document.querySelectorAll('.highlight-python button.copy').length"
            assert await page.run(copies) == blocks > 3
            assert await page.run("document.querySelectorAll('a.right-next').length") == 1
            await page.open((built / "search.html").as_uri() + "?q=grokking", 1280)
            await page.until("document.querySelectorAll('ul.search li').length > 5")
            return page.requests, page.complaints

    requests, complaints = asyncio.run(visit())
    assert complaints == []
    assert all(url.startswith(("file:", "data:", "about:")) for url in requests)
