"""A picture of means and their intervals, as SVG: a row a setting, a dot at the mean, a bar over its 95 % interval.

Written by hand because a plotting library would be forty megabytes for a dot and a bar. Same figures, same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew_client.types import EvaluationReport

_WIDTH = 760
_LABELS = 230  # pixels for the names of rows, on the left
_FIGURES = 150  # and for the figures, on the right
_ROW = 20
_TOP = 54
_COLOURS = {"strong": "#0b5394", "plain": "#555555", "faint": "#9a9a9a"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One mean and its interval."""

    label: str
    value: float
    low: float
    high: float
    tone: str = "plain"  # strong, plain or faint


@dataclass(frozen=True, kw_only=True, slots=True)
class Group:
    """Rows under a heading."""

    heading: str
    rows: Sequence[Row]


def forest(title: str, groups: Sequence[Group], *, axis: str) -> str:
    """An SVG document. `axis` names what the values measure; the scale spans all intervals, within 0…1 or beyond."""
    rows = [row for group in groups for row in group.rows]
    low, high = _span(rows)
    plot = _WIDTH - _LABELS - _FIGURES

    def place(value: float) -> float:
        return _LABELS + plot * (value - low) / (high - low)

    height = _TOP + _ROW * (len(rows) + len(groups)) + 34
    bottom = height - 30
    out = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
            'font-family="Helvetica, Arial, sans-serif" font-size="12" role="img">'
        ),
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="22" font-size="15" fill="#222222">{escape(title)}</text>',
        (
            f'<text x="{_LABELS + plot / 2:.1f}" y="{height - 4}" text-anchor="middle" fill="#555555">'
            f"{escape(axis)}, 95 % interval</text>"
        ),
    ]
    for tick in _ticks(low, high):
        x = place(tick)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 14}" y2="{bottom}" stroke="#e4e4e4"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 13}" text-anchor="middle" fill="#777777">{tick:.2f}</text>')
    y = _TOP
    for group in groups:
        out.append(f'<text x="12" y="{y + 4}" font-weight="bold" fill="#222222">{escape(group.heading)}</text>')
        y += _ROW
        for row in group.rows:
            colour = _COLOURS[row.tone]
            out += [
                f'<text x="{_LABELS - 10}" y="{y + 4}" text-anchor="end" fill="{colour}">{escape(row.label)}</text>',
                (
                    f'<line x1="{place(row.low):.1f}" x2="{place(row.high):.1f}" y1="{y}" y2="{y}" stroke="{colour}" '
                    'stroke-width="2"/>'
                ),
                f'<circle cx="{place(row.value):.1f}" cy="{y}" r="4" fill="{colour}"/>',
                (
                    f'<text x="{_WIDTH - _FIGURES + 12}" y="{y + 4}" fill="{colour}">'
                    f"{row.value:.3f}  ({row.low:.3f}–{row.high:.3f})</text>"
                ),
            ]
            y += _ROW
    return "\n".join([*out, "</svg>", ""])


def of_report(report: EvaluationReport, title: str, metric: str = "ndcg@10") -> str:
    """The settings of one evaluation: all, without links, each path, each fusion."""

    def rows(names: Sequence[str], tone: str) -> list[Row]:
        found = [(name, report.intervals[name][metric]) for name in names if name in report.intervals]
        means = {"all": report.metrics(), "without expansion": report.without_expansion}
        means |= report.by_path | report.by_fusion
        return [
            Row(label=name, value=means[name][metric], low=low, high=high, tone=tone) for name, (low, high) in found
        ]

    groups = [
        Group(heading="whole search", rows=rows(["all", "without expansion"], "strong")),
        Group(heading="one path alone", rows=rows(list(report.by_path), "plain")),
        Group(heading="fusions, without links", rows=rows(list(report.by_fusion), "faint")),
    ]
    return forest(title, [group for group in groups if group.rows], axis=metric)


def _span(rows: Sequence[Row]) -> tuple[float, float]:
    low, high = min(min(row.low, row.value) for row in rows), max(max(row.high, row.value) for row in rows)
    room = max(0.05 * (high - low), 0.005)
    return low - room, high + room


def _ticks(low: float, high: float) -> list[float]:
    """Round values within the span, at most seven of them."""
    for step in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0):
        if (high - low) / step <= 6:
            break
    first = int(low // step) + 1
    return [number * step for number in range(first, first + 8) if low <= number * step <= high]
