"""The site in a browser, from disk: Playwright drives the system's Chromium; axe looks for barriers to access."""

import json
import pathlib
import shutil

import pytest

from conformance.model.judging import statistics
from conformance.results import store

playwright_api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
axe_api = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")

CHROMIUM = shutil.which("chromium")
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}

#: axe's rules; its preload would fetch the style sheet again, which a page from disk may not do
RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def browser():
    with playwright_api.sync_playwright() as playwright:
        # Chromium has no sandbox as root, for example in a container; that is safe, because the pages are our own.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser, built):
    """Yield a function that opens a page; then check that no page complained or fetched anything but files."""
    contexts, complaints = [], []

    def open_one(name="index.html", viewport=DESKTOP, scheme="light"):
        context = browser.new_context(viewport=viewport, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda r: r.url.startswith(("file:", "data:")) or complaints.append(r.url))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        page.goto((built / name).as_uri())
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


def measured(results, cell_id, stack="linux-tcp"):
    """Return the utilizations of a cell directly from the result lines."""
    return [
        m.utilization
        for m in store.read(results)
        if m.trial.setting.cell.id == cell_id and m.trial.scheme.stack == stack and m.trial.scheme.algorithm == "cubic"
    ]


def test_from_the_front_page_to_a_cell_and_the_numbers_are_those_of_the_results(open_page, results):
    page = open_page()
    page.locator("section", has=page.locator("h2", has_text="cubic")).get_by_role("link", name="linux-tcp").click()
    assert page.locator("h1").inner_text() == "cubic/linux-tcp/6.12.0"
    values = measured(results, "10mbps-20ms-1pct")
    median = statistics.median(values)
    link = page.locator("#main table.heat").first.locator("a[aria-label*='10mbps-20ms-1pct']")
    assert link.inner_text() == f"{median:.2f}"
    assert f"utilization {median:.4f}, median of {len(values)}" in link.get_attribute("aria-label")
    link.click()
    assert page.url.endswith("#20ms-1pct")
    section = page.locator("section:target")
    assert section.locator("h2").inner_text().startswith("10mbps-20ms-1pct")
    assert f"utilization {median:.4f}" in section.inner_text()
    section.locator("summary").click()
    shown = section.locator("table.list tbody tr td:nth-child(3)").all_inner_texts()
    assert shown == [f"{value:.4f}" for value in values]
    assert section.locator(".traces svg").count() == 5
    box = section.locator(".traces svg").first.bounding_box()
    assert box["width"] > 200 and box["height"] > 60


def test_a_failed_cell_says_why_and_shows_no_number(open_page, built):
    (name,) = (p.name for p in built.glob("cubic-linux-tcp-*.html") if "mbps" not in p.name)
    page = open_page(name)
    link = page.locator("table.heat").first.locator("a[aria-label*='10mbps-80ms-1pct']")
    assert link.inner_text() == "!"
    assert "the server died: <script>alert('x')</script>" in link.get_attribute("aria-label")


def readout(page, locator):
    """Return the text at the window's edge for a cell, which is its ::after, and how it is shown."""
    style = "e => { const s = getComputedStyle(e, '::after'); return [s.content, s.position, s.display]; }"
    return locator.evaluate(style)


def test_trials_and_interval_on_hover_and_on_focus(open_page, built):
    (name,) = (p.name for p in built.glob("cubic-linux-tcp-*.html") if "mbps" not in p.name)
    page = open_page(name)
    cells = page.locator("table.heat").first.locator("a")
    first, second = cells.nth(0), cells.nth(1)
    assert readout(page, first)[0] == "none"
    first.hover()
    assert "90 % interval 0.4000 to 0.4400" in readout(page, first)[0] and readout(page, first)[1] == "fixed"
    page.mouse.move(0, 0)
    first.focus()
    page.keyboard.press("Tab")
    assert second.evaluate("e => e === document.activeElement")
    assert "trials from" in readout(page, second)[0] and readout(page, first)[0] == "none"
    page.keyboard.press("Enter")
    page.wait_for_url("**#*")


def test_the_keyboard_skips_the_header_and_reaches_everything(open_page):
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    page.wait_for_url("**#main")  # the browser reports its new address a moment after the key
    unreachable = "[...document.querySelectorAll('main a')].filter(e => e.tabIndex < 0).length"
    assert page.evaluate(unreachable) == 0


def names(built):
    """Return the names of a page of each kind, and of the pages of the stack that has a script as its name."""
    kinds = ["index.html", "clauses.html", "clauses-of-linux-tcp.html", "clauses-rfc9406.html"]
    kinds += ["rfc9743.html", "data.html", "compare-cubic.html"]
    return kinds + sorted(p.name for p in built.glob("cubic-*.html") if "evil" in p.name or "linux" in p.name)


@pytest.mark.parametrize(("viewport", "scheme"), [(DESKTOP, "light"), (PHONE, "dark")], ids=["desktop", "phone"])
def test_no_page_shuts_anyone_out(open_page, built, viewport, scheme):
    """axe has no serious finding (WCAG 2.2 A and AA, including contrast), and no page is wider than its window."""
    for name in names(built):
        page = open_page(name, viewport, scheme)
        if page.locator("summary").count():
            page.locator("summary").first.click()
        found = axe_api.Axe().run(page, options={"runOnly": RULES, "preload": False, "resultTypes": ["violations"]})
        serious = [
            (v["id"], [node["html"][:120] for node in v["nodes"][:3]])
            for v in found.response["violations"]
            if v["impact"] in ("serious", "critical")
        ]
        assert serious == [], (name, json.dumps(serious, indent=1))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name


#: widths at which tables of verdicts are in view whole
WHOLE = [{"width": 1400, "height": 900}, {"width": 400, "height": 900}]


@pytest.mark.parametrize("viewport", WHOLE, ids=["1400 px", "400 px"])
@pytest.mark.parametrize("name", ["index.html", "clauses.html", "clauses-of-linux-tcp.html"])
def test_tables_of_verdicts_are_not_cut(open_page, viewport, name):
    page = open_page(name, viewport)
    wider = "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length"
    assert page.locator(".scroll").count() and page.evaluate(wider) == 0


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_long_margin_widens_no_page(open_page, built, viewport):
    """The longest that zones have, in each row of a scheme's verdicts."""
    (name,) = (p.name for p in built.glob("cubic-linux-tcp-*.html") if "mbps" not in p.name)
    page = open_page(name, viewport)
    long = "(margin 12 % and 0.3 percentage points set by the farthest of aioquic, cloudflare-quiche, ngtcp2, quinn)"
    page.evaluate(
        f"document.querySelectorAll('.verdicts td small').forEach(small => {{ small.textContent = '{long}' }})"
    )
    assert page.locator(".verdicts td small").count()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("viewport", WHOLE, ids=["1400 px", "400 px"])
def test_the_zone_stays_beside_whatever_stack_is_in_view(open_page, viewport):
    page = open_page("compare-cubic.html", viewport)
    zone = page.locator("table.compare td.zone").first
    before = zone.bounding_box()["x"]
    page.locator(".scroll:has(table.compare)").first.evaluate("e => { e.style.width = '18rem'; e.scrollLeft = 60; }")
    assert abs(zone.bounding_box()["x"] - before) < 2


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_screenshots_show_colours_numbers_and_marks(open_page, built, tmp_path, viewport):
    """Screenshots stay in the test's folder for people; the test checks that a violating cell differs from another."""
    page = open_page(viewport=viewport)
    page.screenshot(path=tmp_path / "front.png", full_page=True)
    (name,) = (p.name for p in built.glob("cubic-linux-tcp-*.html") if "mbps" not in p.name)
    page = open_page(name, viewport)
    page.screenshot(path=tmp_path / "scheme.png", full_page=True)
    assert all(pathlib.Path(p).stat().st_size > 10_000 for p in tmp_path.glob("*.png"))
    bad = page.locator("table.heat").first.locator("td.against a").first
    good = page.locator("table.heat").first.locator("td.for a").first
    assert "✗" in bad.inner_text() and "✗" not in good.inner_text()
    outline = "e => getComputedStyle(e).outlineStyle"
    assert (bad.evaluate(outline), good.evaluate(outline)) == ("solid", "none")
