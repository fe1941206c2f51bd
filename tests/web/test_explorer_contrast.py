"""The colours of the style sheet: text has a contrast of 4.5:1 at least, borders of 3:1, light and dark."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

STYLE = files("keywright.explorer").joinpath("static/explorer.css").read_text("utf-8")
LIGHT, DARK = (
    dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6});", block))
    for block in re.findall(r":root \{(.*?)\}", STYLE, re.DOTALL)
)
TEXTS = [
    *((text, ground) for text in ("ink", "soft", "accent") for ground in ("paper", "raised", "stripe")),
    *(
        (level, ground)
        for level in ("error", "warning", "good")
        for ground in (f"{level}-paper", "paper", "stripe")
    ),
    *(("ink", f"{level}-paper") for level in ("error", "warning", "good")),
    ("accent", "error-paper"),
    ("accent", "warning-paper"),
    ("on-accent", "accent"),
    ("paper", "error"),
]
BORDERS = [
    *(("edge", ground) for ground in ("paper", "raised", "stripe")),
    ("accent", "paper"),
    *((level, f"{level}-paper") for level in ("error", "warning", "good")),
]


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, {**LIGHT, **DARK}], ids=["light", "dark"])
@pytest.mark.parametrize(("pairs", "least"), [(TEXTS, 4.5), (BORDERS, 3.0)], ids=["text", "borders"])
def test_contrast_is_sufficient(colours: dict[str, str], pairs: list[tuple[str, str]], least: float) -> None:
    found = {pair: round(contrast(colours[pair[0]], colours[pair[1]]), 2) for pair in pairs}
    assert {pair: ratio for pair, ratio in found.items() if ratio < least} == {}


def test_contrast_is_that_of_the_standard() -> None:
    assert round(contrast("#000", "#ffffff"), 2) == 21.0
    assert round(contrast("#777777", "#fff"), 2) == 4.48
