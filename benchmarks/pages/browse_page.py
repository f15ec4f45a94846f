"""Use the page as people do, in a browser with the network cut off: does all of it work, can it be read?

    python -m benchmarks.pages.browse_page --shots shots/

Needs playwright and a chromium (`--chromium PATH`). Each check runs on a desktop and on a phone of 360
pixels, in light and in dark: nothing is fetched from elsewhere, nothing scrolls sideways, all text has the
contrast of WCAG AA.
"""

import argparse
import io
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.service_process import running
from primaldepth.io import read_depth
from primaldepth.samples import sample_files

ARGUMENTS = ("--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", "--disable-sync", "--use-angle=swiftshader",
             "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist")  # fmt: skip
VIEWS = {"desktop": (1280, 900, "light"), "desktop-dark": (1280, 900, "dark"), "phone": (360, 780, "light"),
         "phone-dark": (360, 780, "dark")}  # fmt: skip
MAX_BYTES = 2_000_000
CONTRAST = Path(__file__).with_name("contrast.js").read_text(encoding="utf-8")


@dataclass
class Visit:
    """One browser window on the page, and what it asked the network for."""

    page: Any
    url: str
    foreign: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def open(self) -> None:
        self.page.goto(self.url)
        self.page.get_by_role("button", name="Run", exact=True).wait_for(timeout=60_000)

    def fill(self, depth: Path, guide: Path) -> None:
        inputs = self.page.locator("input[type=file]")
        inputs.nth(0).set_input_files(str(depth))
        self.page.locator(".file-preview").first.wait_for()
        self.page.locator("input[type=file]").first.set_input_files(str(guide))
        self.page.locator(".file-preview").nth(1).wait_for()

    def choose(self, label: str, value: str) -> None:
        box = self.page.get_by_label(label, exact=True).first
        box.fill(value)
        box.press("Enter")

    def run(self) -> str:
        self.forget()
        self.page.get_by_role("button", name="Run", exact=True).click()
        return self.wait()

    def forget(self) -> None:
        """Mark what is said now, so that `wait` waits for what is said next."""
        self.page.evaluate("document.querySelectorAll('#status [role]').forEach(e => e.dataset.old = '1')")

    def wait(self) -> str:
        self.page.locator("#status [role]:not([data-old])").first.wait_for(timeout=120_000)
        self.page.wait_for_timeout(800)
        return self.page.locator("#status").inner_text()

    def tab(self, name: str) -> None:
        tab = self.page.get_by_role("tab", name=name, exact=True).first
        if not tab.is_visible():
            self.page.locator(".overflow-menu > button").first.click()
            tab = self.page.locator(".overflow-dropdown button", has_text=name).first
        tab.click()

    def check_sides(self) -> None:
        wide = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        expect(wide <= 0, f"scrolls sideways by {wide} pixels")

    def check_contrast(self) -> None:
        short = self.page.evaluate(CONTRAST)
        expect(not short, f"too little contrast: {short[:5]}")


class CheckError(Exception):
    """A check that did not hold."""


def expect(holds: bool, message: str) -> None:
    if not holds:
        raise CheckError(message)


@contextmanager
def visit(browser: Any, url: str, view: str) -> Iterator[Visit]:
    width, height, scheme = VIEWS[view]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, has_touch=width < 500
    )
    page = context.new_page()
    found = Visit(page, url)
    page.on("request", lambda r: found.foreign.append(r.url) if _elsewhere(r.url, url) else None)
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    context.route(lambda address: _elsewhere(address, url), lambda route: route.abort())
    try:
        found.open()
        yield found
        expect(not found.foreign, f"asked for {found.foreign[:3]}")
        expect(not found.complaints, f"script errors: {found.complaints[:3]}")
    finally:
        context.close()


def _elsewhere(address: str, url: str) -> bool:
    return not address.startswith((url, "data:", "blob:"))


def upload_and_run(v: Visit) -> None:
    """Files of one's own; the facts appear, the picture has two sides, text can be read."""
    sample = sample_files()
    v.fill(sample.depth, sample.guide)
    expect("80 x 60 to 640 x 480" in v.run(), "no facts")
    v.check_sides()
    v.check_contrast()


def move_the_slider(v: Visit) -> None:
    """The line between before and after follows the mouse."""
    _example(v)
    handle = v.page.get_by_test_id("slider").first
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    v.page.mouse.move(*middle)
    v.page.mouse.down()
    v.page.mouse.move(middle[0] - 60, middle[1], steps=5)
    v.page.mouse.up()
    moved = handle.bounding_box()["x"] - box["x"]
    expect(-90 < moved < -30, f"the slider moved by {moved} pixels")


def turn_the_view(v: Visit) -> None:
    """The 3-D view shows something, and something else after it was turned."""
    _example(v)
    v.tab("3-D")
    canvas = v.page.locator("canvas").nth(1)
    canvas.wait_for(timeout=30_000)
    v.page.wait_for_timeout(4000)
    canvas.evaluate("element => element.scrollIntoView({block: 'center'})")
    v.page.wait_for_timeout(500)
    first = _pixels(canvas.screenshot())
    expect(float(first.std()) > 5, "the view is empty")
    box = canvas.bounding_box()
    v.page.mouse.move(box["x"] + 150, box["y"] + 150)
    v.page.mouse.down()
    v.page.mouse.move(box["x"] + 60, box["y"] + 150, steps=8)
    v.page.mouse.up()
    v.page.wait_for_timeout(2500)
    change = float(np.abs(_pixels(canvas.screenshot()) - first).mean())
    expect(change > 1, "the view did not turn")
    v.check_sides()
    v.check_contrast()


def compare_two_methods(v: Visit) -> None:
    """Two methods share a slider, whose label names both."""
    v.choose("Compare with", "nearest")
    text = _example(v)
    expect("bilinear, and nearest" in text, f"no second method in {text!r}")
    v.tab("Two methods")
    v.page.get_by_text("bilinear (left) and nearest (right)").wait_for()
    expect(v.page.locator(".slider-wrap img:visible").count() >= 1, "no picture of the two")
    v.check_sides()
    v.check_contrast()


def download(v: Visit) -> None:
    """The 16-bit PNG of the list is the result."""
    _example(v)
    v.tab("Download")
    link = v.page.locator("a[href$='/depth.png']").last  # the first is the upload
    link.wait_for()
    with v.page.expect_download() as waiting:
        link.click()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "depth.png"
        waiting.value.save_as(path)
        depth = read_depth(path)
    expect(depth.values.shape == (480, 640) and depth.unit == "mm", "not the result")
    expect(len(np.unique(depth.values)) > 256, "squeezed to 8 bits")
    v.check_sides()


def look_at_the_rest(v: Visit) -> None:
    """Residual, histogram and certainty are there, readable and no wider than the window."""
    _example(v)
    for name, wanted in (("Residual", ".pd-histogram svg"), ("Certainty", ".pd-note")):
        v.tab(name)
        v.page.locator(f"{wanted}:visible").first.wait_for()
        v.check_sides()
        v.check_contrast()


def wrong_file(v: Visit) -> None:
    """A file that is no depth map is answered with a reason, and the page goes on working."""
    with tempfile.TemporaryDirectory() as folder:
        wrong = Path(folder) / "depth.png"
        wrong.write_text("no picture")
        v.fill(wrong, sample_files().guide)
        text = v.run()
    expect("not a format this package reads" in text, f"no reason in {text!r}")
    v.check_sides()
    v.check_contrast()
    expect("640 x 480" in _example(v), "does not go on")


def too_large_a_file(v: Visit) -> None:
    """A file over the limit is refused with a word about its size."""
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "depth.npy"
        np.save(large, np.ones((700, 700)))
        v.page.locator("input[type=file]").nth(0).set_input_files(str(large))
        v.page.get_by_text("exceed the maximum allowed size", exact=False).first.wait_for(timeout=20_000)
    v.check_sides()


def compare_on_own_frames(v: Visit) -> None:
    """Frames of one's own camera give a sentence, a table that scrolls by itself, and a picture."""
    v.page.get_by_role("button", name="Which method suits my camera?").click()
    part = v.page.locator("#trials")
    part.get_by_role("button", name="Compare methods").wait_for()
    with tempfile.TemporaryDirectory() as folder:
        depth, image = _small_frame(Path(folder))
        part.locator("input[type=file]").nth(0).set_input_files([str(depth)])
        part.locator(".file-preview").first.wait_for()
        part.locator("input[type=file]").last.set_input_files([str(image)])  # the first takes more maps
        part.locator(".file-preview").nth(1).wait_for()
        part.get_by_role("button", name="Compare methods").click()
        v.page.locator("#verdict [role]").first.wait_for(timeout=300_000)
    text = v.page.locator("#verdict").inner_text()
    expect("is the best for this camera" in text, f"no sentence in {text!r}")
    part.locator(".pd-table").wait_for()
    part.locator("img").first.wait_for()
    v.page.wait_for_timeout(800)
    v.check_sides()
    v.check_contrast()


def _small_frame(folder: Path) -> tuple[Path, Path]:
    """A box before a wall, 160x120."""
    depth, image = np.full((120, 160), 2000, np.uint16), np.full((120, 160, 3), 90, np.uint8)
    depth[40:90, 60:120], image[40:90, 60:120] = 1000, 200
    Image.fromarray(depth).save(folder / "box_depth.png")
    Image.fromarray(image).save(folder / "box_image.png")
    return folder / "box_depth.png", folder / "box_image.png"


def keyboard_only(v: Visit) -> None:
    """An example, the button and a tab, with Tab and Enter alone."""
    _reach(v, "Example: Still life, 80x60 to 640x480")
    v.page.keyboard.press("Enter")
    v.page.locator(".file-preview").nth(1).wait_for()
    _reach(v, "Run")
    expect(_outline(v), "the focus is not to be seen")
    v.page.keyboard.press("Enter")
    expect("640 x 480" in v.wait(), "Enter did not run")
    if v.page.get_by_role("tab", name="Two methods").first.is_visible():  # else it is in a menu
        _reach(v, "Two methods")
        v.page.keyboard.press("Enter")
        v.page.get_by_text("Choose a second method").wait_for()


def _reach(v: Visit, name: str) -> None:
    for _ in range(60):
        v.page.keyboard.press("Tab")
        text = v.page.evaluate(
            "(document.activeElement.innerText || document.activeElement.ariaLabel || '').trim()"
        )
        if " ".join(text.split()) == name:
            return
    raise CheckError(f"{name!r} is not reached with Tab")


def _outline(v: Visit) -> bool:
    style = "(() => getComputedStyle(document.activeElement).outlineStyle)()"
    return v.page.evaluate(style) != "none"


def _example(v: Visit) -> str:
    _pick(v)
    return v.run()


def _pick(v: Visit) -> None:
    """Click an example and wait until both of its files are there."""
    v.page.get_by_role("button", name="Example: Still life").click()
    for size in ("6.1 KB", "316.2 KB"):
        v.page.get_by_text(size).wait_for()


def _pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("L"), np.float64)


CHECKS: tuple[Callable[[Visit], None], ...] = (
    upload_and_run,
    move_the_slider,
    turn_the_view,
    compare_two_methods,
    download,
    look_at_the_rest,
    wrong_file,
    too_large_a_file,
    compare_on_own_frames,
    keyboard_only,
)


def two_users_at_once(browser: Any, url: str) -> None:
    """Two windows run different methods at the same time; each gets its own."""
    with visit(browser, url, "desktop") as one, visit(browser, url, "phone") as two:
        for v, name in ((one, "nearest"), (two, "bicubic")):
            v.choose("Method", name)
            _pick(v)
        for v in (one, two):
            v.page.get_by_role("button", name="Run", exact=True).click()
        for v, name in ((one, "nearest"), (two, "bicubic")):
            text = v.wait()
            expect(name in text, f"{name} is not in {text!r}")


def browse(
    url: str,
    chromium: str,
    views: list[str],
    shots: Path | None = None,
    checks: tuple[Callable[[Visit], None], ...] = CHECKS,
) -> Iterator[dict[str, Any]]:
    """Every check in every view; with all of them two visitors at once: {check, view, seconds, problem}."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        for view in views:
            for check in checks:
                yield _row(check.__name__, view, partial(_one, browser, url, view, check, shots))
        if checks == CHECKS:
            yield _row("two_users_at_once", "both", partial(two_users_at_once, browser, url))
        browser.close()


def _one(browser: Any, url: str, view: str, check: Callable[[Visit], None], shots: Path | None) -> None:
    with visit(browser, url, view) as v:
        try:
            check(v)
        finally:
            if shots is not None:
                v.page.screenshot(path=shots / f"{view}-{check.__name__}.png", full_page=True)


def _row(check: str, view: str, action: Callable[[], None]) -> dict[str, Any]:
    from playwright.sync_api import Error

    start, problem = time.perf_counter(), ""
    try:
        action()
    except (CheckError, Error) as error:
        problem = str(error).splitlines()[0]
    return {
        "check": check,
        "view": view,
        "seconds": round(time.perf_counter() - start, 1),
        "problem": problem,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chromium", default=shutil.which("chromium") or shutil.which("google-chrome"))
    parser.add_argument("--view", action="append", choices=list(VIEWS))
    parser.add_argument("--shots", type=Path)
    parser.add_argument(
        "--url", help="of a running service started with --max-bytes 2000000 --method bilinear"
    )
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.shots:
        arguments.shots.mkdir(parents=True, exist_ok=True)
    views = arguments.view or list(VIEWS)
    options = ("--method", "bilinear", "--max-bytes", str(MAX_BYTES))
    rows = []
    with nullcontext() if arguments.url else running(*options) as service:
        for row in browse(arguments.url or service.url, arguments.chromium, views, arguments.shots):
            print(f"{row['view']:<14}{row['check']:<24}{row['problem'] or 'ok'}", flush=True)
            rows.append(row)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if any(row["problem"] for row in rows):
        raise SystemExit("FAILED")


if __name__ == "__main__":
    main()
