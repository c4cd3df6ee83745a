"""The chart of bench/report: bars of each network's latency against the better peer, as SVG."""

import math
from xml.sax.saxutils import escape

from report_data import PEERS, Json, better_peer, count_of, geometric_mean, results, thread_counts

WIDTH, LABELS, BAR, GAP, TOP = 760, 190, 11, 9, 58
COLOURS = ("#7aa6c2", "#1f5f8b", "#0b3a5b")
MEAN = "geometric mean"


def chart_ratios(data: Json) -> dict[str, dict[str, float]]:
    """{threads: {network: ratio to the better peer}}, the geometric mean among the networks."""
    found: dict[str, dict[str, float]] = {}
    for t in thread_counts(data, "latency"):
        part = {n: r for n, e in results(data, "latency", t).items() if (r := better_peer(e)) is not None}
        if part:
            found[t] = part | {MEAN: geometric_mean(part.values())}
    return found


def text(x: float, y: float, words: str, more: str = 'fill="#222"') -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {more}>{escape(words)}</text>'


def bar(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def chart(data: Json) -> str:
    """Bars of the ratio to the better peer, on a logarithmic scale; right of 1 lamina is faster."""
    ratios = chart_ratios(data)
    values = [v for part in ratios.values() for v in part.values()] or [1.0]
    low, high = min(0.5, *values) / 1.05, max(2.0, *values) * 1.25
    names = {n for part in ratios.values() for n in part} - {MEAN}
    rows = [*sorted(names, key=lambda n: -max(part.get(n, 0) for part in ratios.values())), MEAN]
    step = BAR * max(1, len(ratios)) + GAP
    height = TOP + step * len(rows) + 30

    def place(value: float) -> float:
        return LABELS + (WIDTH - LABELS - 20) * math.log(value / low) / math.log(high / low)

    title = "Speed against the better of " + " and ".join(PEERS.values())
    out = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" font-family="sans-serif" font-size="12">'
        ),
        bar(0, 0, WIDTH, height, "#ffffff"),
        text(14, 22, title, 'font-size="15" font-weight="bold" fill="#222"'),
    ]
    for k, t in enumerate(ratios):
        out += [bar(14 + 95 * k, 32, 12, 12, COLOURS[k % 3]), text(31 + 95 * k, 42, count_of(t))]
    for tick in (0.125, 0.25, 0.5, 1, 2, 4, 8, 16, 32):
        if low <= tick <= high:
            line = f'x1="{place(tick):.1f}" x2="{place(tick):.1f}" y1="{TOP - 4}" y2="{height - 24}"'
            out.append(f'<line {line} stroke="{"#222" if tick == 1 else "#ddd"}"/>')
            out.append(text(place(tick), height - 8, f"{tick:g}x", 'text-anchor="middle" fill="#444"'))
    for i, name in enumerate(rows):
        y = TOP + i * step
        weight = ' font-weight="bold"' if name == MEAN else ""
        out.append(text(LABELS - 10, y + step / 2 + 1, name, f'text-anchor="end" fill="#222"{weight}'))
        for k, part in enumerate(ratios.values()):
            if name in part:
                left, right = sorted((place(1), place(part[name])))
                top = y + k * BAR
                out.append(bar(left, top, max(right - left, 0.5), BAR - 1, COLOURS[k % 3]))
                out.append(text(right + 4, top + BAR - 2, f"{part[name]:.2f}", 'font-size="10" fill="#444"'))
    return "\n".join([*out, "</svg>"]) + "\n"
