"""`penchant explore` in a headless Chromium: drawn, fit for a phone, moved by keys, on its own."""

import asyncio

import numpy as np
import pytest

pytest.importorskip("bokeh")

import penchant
from explore_browser import CHROMIUM, FOCUS, PAINTED, browser, served
from explore_study import made
from penchant import store
from penchant.explore.views import regularizer

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")

VIEWS = ("study", "watch", "data", "regularizer", "sphere", "regression", "grokking", "claims")
# the share of coloured pixels in the canvases of the plots: empty plots have next to none
COLOURED = """(() => { let seen = 0;
  const walk = node => {
    if (node.shadowRoot) walk(node.shadowRoot);
    if (node.tagName === "CANVAS" && node.width > 100) {
      const data = node.getContext("2d").getImageData(0, 0, node.width, node.height).data;
      for (let i = 0; i < data.length; i += 4)
        if (data[i + 3] > 200 && Math.max(data[i], data[i + 1], data[i + 2])
            - Math.min(data[i], data[i + 1], data[i + 2]) > 60) seen += 1;
    }
    for (const child of node.childNodes) walk(child);
  };
  walk(document.body); return seen; })()"""
CELL = """(() => { const box = Bokeh.documents[0].get_model_by_name("diagram");
  const view = Bokeh.index.find_one(box), frame = view.frame.bbox;
  const at = view.el.getBoundingClientRect();
  return [at.x + frame.left + frame.width * 0.9, at.y + frame.top + frame.height * 0.1]; })()"""


# every element that the Tab key stops at, with the name and the role that it is read out by
STOPS = """(() => { const found = [];
  const walk = node => {
    if (node.tabIndex >= 0)
      found.push([node.tagName, node.getAttribute("role") || "",
                  node.getAttribute("aria-label")
                  || (["A", "BUTTON", "SUMMARY"].includes(node.tagName) ? node.textContent : "")]);
    if (node.shadowRoot) for (const child of node.shadowRoot.children) walk(child);
    for (const child of node.children) walk(child);
  };
  walk(document.body); return found; })()"""
MODEL = "Bokeh.documents[0].get_model_by_name"
PLACE = """name => { const view = Bokeh.index.find_one(Bokeh.documents[0].get_model_by_name(name));
  view.el.scrollIntoView({block: "center", behavior: "instant"});
  const box = view.el.getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2]; }"""
DROP = """(text, name) => { const find = node => {
    for (const child of [...(node.shadowRoot ? node.shadowRoot.children : []), ...node.children]) {
      if (child.tagName === "INPUT" && child.type === "file") return child;
      const inner = find(child);
      if (inner !== null) return inner;
    }
    return null; };
  const input = find(document.body), data = new DataTransfer();
  data.items.add(new File([text], name));
  input.files = data.files;
  input.dispatchEvent(new Event("change", {bubbles: true})); }"""
DARKNESS = """[getComputedStyle(document.body).backgroundColor,
  getComputedStyle(document.querySelector(".plot")).filter]"""
INVERTED = "invert(0.89) hue-rotate(180deg)"
OUTLINE = f"getComputedStyle({FOCUS}).outlineStyle"


async def visit(url, folder):
    """Everything that the tests below ask about, from one browser."""
    seen = {}
    async with browser(folder / "profile") as page:
        for name in VIEWS:
            await page.open(f"{url}?view={name}", 1280)
            seen[name, "coloured"] = await page.run(COLOURED)
            seen[name, "stops"] = await page.run(STOPS)
            await page.picture(folder / f"{name}_1280.png")
            await page.resize(390)
            seen[name, "width"] = await page.run("document.documentElement.scrollWidth")
            await page.picture(folder / f"{name}_390.png")
        seen["keys"] = await by_keys(page, url)
        seen["dropped"] = await by_dropping(page, url)
        seen["folded"] = await by_folding(page, url)
        seen["click"] = await by_click(page, url)
        seen["played"] = await by_playing(page, url)
        seen["dragged"] = await by_dragging(page, url)
        seen["copied"] = await by_copying(page, url)
        seen["dark"] = await in_the_dark(page, url)
        seen["requests"], seen["complaints"] = page.requests, page.complaints
    return seen


async def by_dropping(page, url):
    """The sentence about the example, about a file that is dropped, and about one that is wrong."""
    await page.open(f"{url}?view=data", 1280)
    sentences = [await page.run(f"{MODEL}('sentence').text")]
    table = "weight,height,y\\n" + "\\n".join(f"{k % 3},{k},{2 * k + 1}" for k in range(12))
    await page.run(f"({DROP})({table!r}, 'mine.csv')".replace("\\\\n", "\\n"))
    shown = "window.Bokeh?.documents[0]?.get_model_by_name('sentence')?.text ?? ''"  # it reloads
    await page.until(f"({shown}).includes('height')")
    sentences.append(await page.run(f"{MODEL}('sentence').text"))
    code = await page.run(f"{MODEL}('python').text")
    await page.run(f"({DROP})('a,b', 'wrong.csv')")
    await page.until(f"{MODEL}('sentence').text.includes('wrong.csv')")
    return [*sentences, await page.run(f"{MODEL}('sentence').text")], code


async def by_folding(page, url):
    """The height of the sheet of controls on a phone, before and after a tap on its title."""
    await page.open(f"{url}?view=regularizer", 390)
    heights = []
    for _ in range(2):
        heights.append(await page.run("document.querySelector('.controls').offsetHeight"))
        await page.run("document.querySelector('.controls > summary').click()")
    return heights


async def by_keys(page, url):
    """What Tab and one arrow do: classes on the way, outline, address, range, sentence."""
    await page.open(f"{url}?view=regularizer&depth=3&log10_mu=-2&shape=2", 1280)
    before = await page.run(f"({FOCUS}).className"), await page.run(OUTLINE)
    for _ in range(20):
        await page.press("Tab")
        if "noUi-handle" in await page.run(f"({FOCUS}).className || ''"):
            break
    outline = await page.run(OUTLINE)
    await page.press("ArrowRight")
    await page.until('location.search.includes("depth=4")')
    await page.run(PAINTED)
    wide = await page.run('Bokeh.documents[0].get_model_by_name("ball").x_range.end')
    return before, outline, await page.run("location.search"), wide


async def by_click(page, url):
    """The address before and after a click on the last cell of the first row from above."""
    await page.open(f"{url}?view=study&x=alpha&y=width", 1280)
    await page.run(PAINTED)
    await page.click(*await page.run(CELL))
    await page.until('location.search.includes("at0=3") && location.search.includes("at1=2")')
    return await page.run('Bokeh.documents[0].get_model_by_name("sentence").text')


async def by_playing(page, url):
    """The address and the word on the button after a sweep that begins three steps from its end."""
    await page.open(f"{url}?view=regularizer&log10_mu=3.25", 1280)
    await page.click(*await page.run(f"({PLACE})('play')"))
    await page.until('location.search.includes("log10_mu=3.75")')
    word = await page.run(f"{MODEL}('play').label")
    await page.until(f"!{MODEL}('play').active")
    return word, await page.run("location.search")


async def by_dragging(page, url):
    """Azimuth and pitch in the address after a drag to the right and down."""
    await page.open(f"{url}?view=sphere", 1280)
    x, y = await page.run(f"({PLACE})('sphere')")
    for kind, way in (("mousePressed", 0), ("mouseMoved", 20), ("mouseMoved", 50)):
        at = {"x": x + way, "y": y + way, "button": "left", "buttons": 1}
        await page.send("Input.dispatchMouseEvent", type=kind, **at)
    await page.until('location.search.includes("azimuth=10")')
    return await page.run("location.search")


async def by_copying(page, url):
    """What the button puts into the clipboard, taken from the call that a page makes for it."""
    await page.open(f"{url}?view=regularizer", 1280)
    catch = "navigator.clipboard.writeText = (text) => { window.caught = text; return Promise"
    await page.run(f"{catch}.resolve() }}")
    await page.run("document.querySelector('details.python').open = true")
    await page.run(PAINTED)
    await page.click(*await page.run(f"({PLACE})('copy_code')"))
    await page.until(f"{MODEL}('copy_code').label === 'Copied'")
    return await page.run("window.caught")


async def in_the_dark(page, url):
    """The background of the page in light and in dark, and the filter of a plot."""
    found = []
    for scheme in ("light", "dark"):
        preference = {"name": "prefers-color-scheme", "value": scheme}
        await page.send("Emulation.setEmulatedMedia", features=[preference])
        await page.open(f"{url}?view=regularizer", 1280)
        found.append(await page.run(DARKNESS))
    return found


def seen(folder):
    """What a browser saw of a page with a little study and a report."""
    from little_papers import library
    from penchant.lab.report.write import write_report
    from penchant.lab.verification import gather_verdicts

    study = store.write(made(), folder / "little.nc")
    write_report(gather_verdicts(library.select(["A-SUM"]), jobs=1), folder / "report")
    with served(study, folder / "report", watch=watched(folder / "run.nc")) as url:
        return url, asyncio.run(visit(url, folder))


def watched(file):
    """The record of a little watched run."""
    start = np.ones((3, 2)) / 2
    watch = penchant.watch(
        lambda w, x: (x @ w**2).sum(axis=1), np.eye(3), parameters=start, budget=None
    )
    for step in range(1, 40):
        watch(step, start * (1 + step / 20), train_loss=1 / step, test_accuracy=step / 40)
    return watch.save(file)


@pytest.mark.slow
def test_the_page_in_a_browser(tmp_path):
    """One test, since a browser and a server take seconds to start."""
    url, found = seen(tmp_path)
    every_view_is_drawn_and_fits_into_a_phone(found)
    nothing_is_asked_of_another_machine(url, found["requests"])
    assert found["complaints"] == []
    the_keys_reach_and_move_a_slider(*found["keys"])
    every_stop_has_a_name(found)
    (example, dropped, refused), code = found["dropped"]
    assert "'y'" in example
    assert "largest coefficient is that of 'height', 1 in" in dropped
    assert "'mine.csv'" in code
    assert "'wrong.csv' must have a row of numbers for each sample" in refused
    sheet, folded = found["folded"]
    assert folded < 60 < sheet
    assert found["played"] == ("■ Stop", "?view=regularizer&depth=2&log10_mu=4&shape=1")
    assert found["dragged"].endswith("azimuth=10&pitch=42")  # 50 pixels are 20 degrees
    start = regularizer.VIEW.start
    assert found["copied"] == regularizer.python(start) != regularizer.python({**start, "depth": 3})
    assert found["dark"] == [["rgb(251, 250, 248)", "none"], ["rgb(20, 23, 26)", INVERTED]]
    assert found["click"].startswith("alpha = 10, width = 32, seed = 0: error = 22")


def every_view_is_drawn_and_fits_into_a_phone(found):
    for name in VIEWS[:-1]:
        assert found[name, "coloured"] > 300, name
    assert found["claims", "coloured"] == 0  # the control: a page without a canvas
    assert {name: found[name, "width"] for name in VIEWS} == dict.fromkeys(VIEWS, 390)


def the_keys_reach_and_move_a_slider(before, outline, address, wide):
    assert "noUi-handle" not in before[0]
    assert (before[1], outline) == ("none", "solid")  # the control: the body has no outline
    assert address == "?view=regularizer&depth=4&log10_mu=-2&shape=2"
    shown = regularizer.picture({"depth": 4, "log10_mu": -2.0, "shape": 2.0})
    assert wide == pytest.approx(shown.panels[1].x_range[1])
    earlier = regularizer.picture({"depth": 3, "log10_mu": -2.0, "shape": 2.0})
    assert wide != pytest.approx(earlier.panels[1].x_range[1])


def every_stop_has_a_name(found):
    for name in VIEWS:
        stops = found[name, "stops"]
        assert [stop for stop in stops if not stop[2].strip()] == []
    roles = [role for _, role, _ in found["study", "stops"]]
    assert roles.count("slider") == 3
    assert roles.count("img") == 3
    names = [name for _, _, name in found["study", "stops"]]
    assert {"colour", "across", "up", "alpha"} <= set(names)


def nothing_is_asked_of_another_machine(url, requests):
    home = url.removeprefix("http://")
    own = (f"http://{home}", f"ws://{home}", "data:", "about:blank", f"blob:http://{home}")
    assert len(requests) > 10
    assert [request for request in requests if not request.startswith(own)] == []
