"""The picture in README is the one that its script draws, and can be read in both schemes."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks/forgetting.py"
SVG = SCRIPT.with_suffix(".svg").read_text(encoding="utf-8")
PLACE = "{http://www.w3.org/2000/svg}"
# Names of colours that text is written in, and that bars have.
IN_TEXT = ["text", "soft", "pinned", "lost"]
IN_BARS = ["talk", "known", "brief", "pinned"]


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb``, as WCAG defines it."""
    shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast of two colours, from 1 to 21, as WCAG defines it."""
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def schemes() -> dict[str, dict[str, str]]:
    """The colours by name, of the light scheme and of the dark one."""
    style = re.search("<style>(.*)</style>", SVG, re.DOTALL)
    assert style is not None
    light, dark = style[1].split("@media(prefers-color-scheme:dark)")
    rule = r"\.(\w+)\{fill:(#\w{6})\}"
    return {"light": dict(re.findall(rule, light)), "dark": dict(re.findall(rule, dark))}


def test_the_picture_is_what_the_script_draws() -> None:
    """After a change of the script or of what a memory keeps: python benchmarks/forgetting.py"""
    script = runpy.run_path(str(SCRIPT))
    assert script["picture"]() == SVG


def test_the_memory_has_what_the_list_has_lost() -> None:
    script = runpy.run_path(str(SCRIPT))
    kept, last = script["in_the_memory"](), script["in_the_last_messages"]()
    assert {"user:allergy", "user:name", "user:guests", "chat:14"} <= kept[-1]
    assert last[-1] == {f"chat:{number}" for number in range(7, 15)}
    assert max(map(len, kept)) == max(map(len, last)) == script["SIZE"]
    # Said in the fourth minute, for four minutes.
    assert ["note:kitchen" in keys for keys in kept[2:9]] == [False, *[True] * 4, False, False]
    assert "the allergy is lost" in SVG
    assert "the allergy is known" in SVG


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_can_be_read_in(scheme: str) -> None:
    """Text has a contrast of 4.5 and bars of 3, the least that WCAG asks of each."""
    colours = schemes()[scheme]
    ground = colours["ground"]
    assert min(contrast(colours[name], ground) for name in IN_TEXT) >= 4.5
    assert min(contrast(colours[name], ground) for name in IN_BARS) >= 3
    assert (luminance(ground) > 0.5) == (scheme == "light")


def test_the_picture_needs_nothing_from_elsewhere_and_says_what_it_shows() -> None:
    root = ElementTree.fromstring(SVG)
    used = {element.tag.removeprefix(PLACE) for element in root.iter()}
    assert used == {"svg", "title", "desc", "style", "rect", "text"}
    assert "url(" not in SVG
    assert root.get("role") == "img"
    colours = set(schemes()["light"])
    for element in root.iter():
        classes = set(element.get("class", "").split()) - {"head"}
        assert classes <= colours
        assert len(classes) == (element.tag.removeprefix(PLACE) in {"rect", "text"})


def test_the_readme_shows_the_picture() -> None:
    assert "(benchmarks/forgetting.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
