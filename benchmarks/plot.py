"""Plots as SVG: lines over sizes, and ratios with their spread. Legible on light and dark, without a library.

A plot is a picture in a page, so it follows the reader's system and brings its own background.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10
from typing import NamedTuple

from benchmarks.measuring import Figure

__all__ = ["Dot", "Row", "lines_plot", "ratios_plot"]

WIDTH = 820
LINES_HEIGHT = 400
LEFT, RIGHT, TOP, BOTTOM = 74, 240, 52, 50
ROW_HEIGHT, LABELS = 26, 230
LABEL_GAP = 17
LIGHT = ("#0a6aa8", "#b3420a", "#3f7d20", "#7a3fa0", "#8a6100", "#5f6b7a")
DARK = ("#5cb8f0", "#ff9a62", "#8ccf6d", "#c9a0f0", "#e3b94d", "#a3b0c0")
STYLE = """
svg { font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 13px }
.ground { fill: #ffffff } text { fill: #24292f } .title { font-size: 15px; font-weight: 600 } .quiet { fill: #57606a }
.grid { stroke: #d8dee4 } .axis { stroke: #8c959f } .target { stroke: #24292f; stroke-dasharray: 5 4 }
.line { fill: none; stroke-width: 2 } .ours { stroke-width: 3 } .spread { stroke-width: 1.5; opacity: .6 }
"""
DARK_STYLE = """
.ground { fill: #161b22 } text { fill: #e6edf3 } .quiet { fill: #9aa4b0 }
.grid { stroke: #2d343d } .axis { stroke: #6e7681 } .target { stroke: #e6edf3 }
"""


class Dot(NamedTuple):
    """A ratio of one series, with its target."""

    series: str
    figure: Figure


class Row(NamedTuple):
    label: str
    dots: Sequence[Dot]


class Scale(NamedTuple):
    """A logarithmic axis from one place of the picture to another."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        share = (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return powers of ten, or also their halves and fifths where there are few."""
        exponents = range(floor(log10(self.low)), ceil(log10(self.high)) + 1)
        steps = (1,) if log10(self.high / self.low) > 2.5 else (1, 2, 5)
        found = (step * 10.0**exponent for exponent in exponents for step in steps)
        return [tick for tick in found if self.low * 0.999 <= tick <= self.high * 1.001]


def lines_plot(
    title: str, x_title: str, y_title: str, series: Mapping[str, Sequence[tuple[int, Figure]]]
) -> str:
    """Return a plot with a line for each series, both axes logarithmic. The first series is ours."""
    points = [point for each in series.values() for point in each]
    sizes = [size for size, _ in points]
    x = _scale(sizes, LEFT, WIDTH - RIGHT)
    y = _scale([value for _, found in points for value in found], LINES_HEIGHT - BOTTOM, TOP)
    parts = [_text(LEFT, 24, title, "title"), _text(LEFT, 42, y_title, "quiet")]
    for tick in y.ticks():
        place = y.at(tick)
        parts.append(_rule(LEFT, place, WIDTH - RIGHT, place, "grid"))
        parts.append(_text(LEFT - 8, place + 4, _number(tick), "quiet", "end"))
    base = LINES_HEIGHT - BOTTOM
    marks = sorted(set(sizes))
    parts += [_rule(x.at(size), base, x.at(size), base + 5, "axis") for size in marks]
    parts += [_text(x.at(size), base + 19, _number(size), "quiet", "middle") for size in _spaced(marks, x)]
    parts.append(_rule(LEFT, base, WIDTH - RIGHT, base, "axis"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, LINES_HEIGHT - 10, x_title, "quiet", "middle"))
    for number, found in enumerate(series.values()):
        parts += _line(number, sorted(found), x, y)
    ends = {name: y.at(max(found)[1].value) for name, found in series.items()}
    for (name, place), number in zip(_apart(ends).items(), _places(ends, list(series)), strict=True):
        parts.append(_text(WIDTH - RIGHT + 12, place + 4, name, f"t{number}"))
    return _svg(LINES_HEIGHT, title, len(series), parts)


def ratios_plot(title: str, x_title: str, rows: Sequence[Row], targets: Mapping[str, float]) -> str:
    """Return a plot with a row for each subject: a dot and its spread for each series, targets as lines."""
    names = list(dict.fromkeys(dot.series for row in rows for dot in row.dots))
    height = TOP + 24 + ROW_HEIGHT * len(rows) + BOTTOM
    ratios = [value for row in rows for dot in row.dots for value in dot.figure]
    x = _scale([*ratios, *targets.values(), 1.0], LABELS, WIDTH - 30)
    top, base = TOP + 14, height - BOTTOM
    parts = [_text(20, 24, title, "title")]
    place = 20.0
    for number, name in enumerate(names):
        parts.append(f'<circle class="f{number}" cx="{place + 5:.0f}" cy="42" r="5"/>')
        parts.append(_text(place + 16, 46, name, "quiet"))
        place += 34 + 7.2 * len(name)
    for tick in x.ticks():
        parts.append(_rule(x.at(tick), top, x.at(tick), base, "grid"))
        parts.append(_text(x.at(tick), base + 18, _number(tick), "quiet", "middle"))
    for index, (name, target) in enumerate(sorted(targets.items(), key=lambda each: each[1])):
        parts.append(_rule(x.at(target), top, x.at(target), base, "target"))
        parts.append(_text(x.at(target), top - 4, name, "quiet", "start" if index else "end"))
    parts.append(_text((LABELS + WIDTH) / 2, height - 10, x_title, "quiet", "middle"))
    for index, row in enumerate(rows):
        middle = top + ROW_HEIGHT * (index + 0.5)
        parts.append(_text(LABELS - 12, middle + 4, row.label, "", "end"))
        for dot in row.dots:
            number = names.index(dot.series)
            level = middle + (number - (len(names) - 1) / 2) * 8
            parts.append(
                _rule(x.at(dot.figure.low), level, x.at(dot.figure.high), level, f"spread s{number}")
            )
            parts.append(
                f'<circle class="f{number}" cx="{x.at(dot.figure.value):.1f}" cy="{level:.1f}" r="4"/>'
            )
    return _svg(height, title, len(names), parts)


def _line(number: int, points: Sequence[tuple[int, Figure]], x: Scale, y: Scale) -> list[str]:
    path = " ".join(f"{x.at(size):.1f},{y.at(found.value):.1f}" for size, found in points)
    kind = "line ours" if number == 0 else "line"
    parts = [f'<polyline class="{kind} s{number}" points="{path}"/>']
    for size, found in points:
        place = x.at(size)
        parts.append(_rule(place, y.at(found.low), place, y.at(found.high), f"spread s{number}"))
        parts.append(f'<circle class="f{number}" cx="{place:.1f}" cy="{y.at(found.value):.1f}" r="3.5"/>')
    return parts


def _scale(values: Sequence[float], start: float, end: float) -> Scale:
    low, high = min(values), max(values)
    return Scale(low * 0.85, high * 1.18, start, end)


def _spaced(sizes: Sequence[int], x: Scale) -> list[int]:
    """Leave out the labels that would overlap the one before."""
    kept: list[int] = []
    for size in sizes:
        if not kept or x.at(size) - x.at(kept[-1]) > 44:
            kept.append(size)
    return kept


def _apart(places: Mapping[str, float]) -> dict[str, float]:
    """Move labels down until none overlaps the one above."""
    moved: dict[str, float] = {}
    last = 0.0
    for name, place in sorted(places.items(), key=lambda each: each[1]):
        last = moved[name] = max(place, last + LABEL_GAP)
    return moved


def _places(ends: Mapping[str, float], names: Sequence[str]) -> list[int]:
    return [names.index(name) for name in _apart(ends)]


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _rule(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _number(value: float) -> str:
    if value >= 1_000_000:
        return f"{value / 1_000_000:g} million"
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def _colours(palette: Sequence[str], count: int) -> str:
    return "".join(
        f".s{n} {{ stroke: {colour} }} .f{n}, .t{n} {{ fill: {colour} }} "
        for n, colour in enumerate(palette[:count])
    )


def _svg(height: float, title: str, count: int, parts: Sequence[str]) -> str:
    style = f"{STYLE}{_colours(LIGHT, count)}\n@media (prefers-color-scheme: dark) {{{DARK_STYLE}{_colours(DARK, count)}}}"
    inside = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" '
        f'height="{height:.0f}" role="img">\n<title>{escape(title)}</title>\n<style>{style}</style>\n'
        f'<rect class="ground" width="{WIDTH}" height="{height:.0f}"/>\n{inside}\n</svg>\n'
    )
