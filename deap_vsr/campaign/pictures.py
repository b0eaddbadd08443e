"""Small pictures for the page, as SVG: no script, no font, no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from deap_vsr.tree.operators import Array

WIDTH, HEIGHT = 360, 260
LEFT, RIGHT, TOP, BOTTOM = 62, 10, 10, 44
#: Ticks of an axis, about.
TICKS = 4


@dataclass(frozen=True)
class Points:
    """Points of a picture: where, how unsure, their class of colour, and what is told of each."""

    x: Array
    y: Array
    errors: Array | None = None
    kind: str = "a"
    told: Sequence[str] = ()


def picture(points: Sequence[Points], lines: Sequence[tuple[Array, Array]], x_label: str, y_label: str) -> str:
    """Return a picture of points with error bars, and of lines."""
    xs = _finite([*(p.x for p in points), *(x for x, _ in lines)])
    spread = [p.y + s * p.errors for p in points if p.errors is not None for s in (-1.0, 1.0)]
    ys = _finite([*(p.y for p in points), *spread, *(y for _, y in lines)])
    if not len(xs) or not len(ys):
        return ""
    across, up = _scale(xs, LEFT, WIDTH - RIGHT), _scale(ys, HEIGHT - BOTTOM, TOP)
    parts = [_axes(across, up, x_label, y_label)]
    for x, y in lines:
        good = np.isfinite(x) & np.isfinite(y)
        places = " ".join(f"{across.at(a):.1f},{up.at(b):.1f}" for a, b in zip(x[good], y[good], strict=True))
        parts.append(f'<polyline class="line" points="{places}"/>')
    for group in points:
        parts += [_point(group, i, across, up) for i in range(len(group.x))]
    name = escape(f"{y_label} against {x_label}")
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg {size} role="img" aria-label="{name}"><title>{name}</title>{"".join(parts)}</svg>'


@dataclass(frozen=True)
class _Scale:
    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def _scale(values: Array, start: float, end: float) -> _Scale:
    low, high = float(values.min()), float(values.max())
    room = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
    return _Scale(low - room, high + room, start, end)


def _point(group: Points, i: int, across: _Scale, up: _Scale) -> str:
    x, y = float(group.x[i]), float(group.y[i])
    if not (np.isfinite(x) and np.isfinite(y)):
        return ""
    bar = ""
    if group.errors is not None and np.isfinite(group.errors[i]) and group.errors[i] > 0:
        ends = up.at(y - group.errors[i]), up.at(y + group.errors[i])
        bar = f'<path class="bar" d="M{across.at(x):.1f} {ends[0]:.1f}V{ends[1]:.1f}"/>'
    told = f"<title>{escape(group.told[i])}</title>" if group.told else ""
    return f'{bar}<circle class="{group.kind}" cx="{across.at(x):.1f}" cy="{up.at(y):.1f}" r="3.2">{told}</circle>'


def _axes(across: _Scale, up: _Scale, x_label: str, y_label: str) -> str:
    floor, wall = HEIGHT - BOTTOM, LEFT
    parts = [f'<path class="axis" d="M{wall} {TOP}V{floor}H{WIDTH - RIGHT}"/>']
    for value in _ticks(across.low, across.high):
        place = across.at(value)
        parts.append(f'<path class="axis" d="M{place:.1f} {floor}v4"/>')
        parts.append(f'<text x="{place:.1f}" y="{floor + 16}" text-anchor="middle">{value:.4g}</text>')
    for value in _ticks(up.low, up.high):
        place = up.at(value)
        parts.append(f'<path class="axis" d="M{wall} {place:.1f}h-4"/>')
        parts.append(f'<text x="{wall - 7}" y="{place + 4:.1f}" text-anchor="end">{value:.4g}</text>')
    middle = (TOP + floor) / 2
    parts.append(
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>'
    )
    turned = f'transform="rotate(-90 12 {middle})" text-anchor="middle"'
    parts.append(f'<text x="12" y="{middle}" {turned}>{escape(y_label)}</text>')
    return "".join(parts)


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two others."""
    rough = (high - low) / TICKS
    decade = 10.0 ** np.floor(np.log10(rough))
    step = next(decade * factor for factor in (1.0, 2.0, 5.0, 10.0) if decade * factor >= 0.7 * rough)
    first = np.ceil(low / step)
    return [float(f"{(first + i) * step:.10g}") for i in range(int(np.floor(high / step) - first) + 1)]


def _finite(parts: Sequence[Array]) -> Array:
    values = np.concatenate([np.ravel(part) for part in parts]) if parts else np.empty(0)
    return np.asarray(values[np.isfinite(values)])
