"""The page of bench/fusions: a part for each rule, then chains of layers and binary convolutions."""

import statistics
from collections.abc import Callable
from typing import Any

from fusion_chains import LENGTHS
from fusion_rules import RULES, RulePage

Json = dict[str, Any]
BOUND = 0.8  # of the speed that a fusion could reach
SLOW = 2.0  # nanoseconds per element and stage from which a stage is set in bold


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3g}"


def table(heads: list[str], rows: list[list[str]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "| --- |" + " ---: |" * (len(heads) - 1)]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def rule_table(shapes: Json, on: str = "on, us", off: str = "off, us") -> list[str]:
    """A row per shape; columns that no shape has anything for are left out."""
    entries = shapes.values()
    heads = ["shape", on, off, "off ÷ on"]
    more: dict[str, tuple[str, Callable[[Json], str]]] = {
        "steps": ("steps", lambda e: "{} of {}".format(*e["steps"])),
        "between": ("between, MB", lambda e: number(e["between"])),
        "bound": ("of the bound", lambda e: f"{100 * e['bound']:.0f} %, {verdict(e)}"),
        "refused": ("why not", lambda e: str(e["refused"])),
    }
    columns = {key: column for key, column in more.items() if any(key in e for e in entries)}
    rows = []
    for shape, e in shapes.items():
        row = [shape, "-", "-", "-"]
        if "refused" not in e:
            row = [shape, number(e["on"]), number(e["off"]), f"**{e['ratio']:.2f}**"]
        rows.append([*row, *(text(e) if key in e else "" for key, (_, text) in columns.items())])
    return table([*heads, *(head for head, _ in columns.values())], rows)


def verdict(e: Json) -> str:
    """What is wanted, and whether it is so. Nothing is wanted where the plan does not fuse."""
    if e["steps"][0] == e["steps"][1]:
        return "not fused"
    if target := e.get("target"):
        return f"wanted {target:g} times: {'met' if e['ratio'] >= target else 'missed'}"
    return f"wanted {100 * BOUND:.0f} %: {'met' if e['bound'] >= BOUND and e['ratio'] >= 1 else 'missed'}"


def chain_table(chains: Json) -> list[str]:
    heads = [
        "stage",
        *(f"{n}" for n in LENGTHS),
        f"ns per element and stage, of {LENGTHS[-1]}",
        "steps that run",
    ]
    rows = []
    for kind, lengths in chains.items():
        ns = lengths[str(LENGTHS[-1])]["ns"]
        cost = f"**{ns:.2f}**" if ns >= SLOW else f"{ns:.3f}"
        steps = ", ".join(str(lengths[str(n)]["steps"]) for n in LENGTHS)
        rows.append([kind, *(f"{lengths[str(n)]['ratio']:.2f}" for n in LENGTHS), cost, steps])
    return table(heads, rows)


def noise(settings: Json) -> str:
    """How far ratios are from 1 where the plan does not fuse, so that both ways run the same steps."""
    name = "fuse-conv-depthwise"
    shapes = [e for p in settings.values() for e in p.get("rules", {}).get(name, {}).values()]
    same = sorted(abs(e["ratio"] - 1) for e in shapes if "ratio" in e and e["steps"][0] == e["steps"][1])
    if not same:
        return ""
    middle, most = 100 * statistics.median(same), 100 * same[-1]
    return (
        " The machine is shared: for shapes where both plans have the same steps, ratios differ from 1 by"
        f" {middle:.0f} % in the median and by {most:.0f} % at most."
    )


def page(data: Json) -> str:
    settings: Json = data["settings"]
    lines = [
        "# Fusions",
        "",
        "<!-- made by bench/fusions; `bench/fusions` alone makes it again from bench/fusions.json -->",
        "",
        (
            "This page says what each fusion rule does, when it is refused, and what it gains. It was measured in f32 on"
            f" {data.get('processor', '?')} with an L3 cache of {data.get('l3', '?')} MiB, on {data.get('date', '?')}."
            " *On* is the time with the rule, *off* the time without it; both run warm, in processes of their own, in"
            " turns. A time is the shortest within one turn; a ratio is the"
            f" median over {data.get('rounds', '?')} rounds of the ratio within one round; *steps* is the number of"
            f" steps with the rule, of those without it.{noise(settings)}"
            " `lamina explain MODEL --why RULE LAYER` says what a rule did at a layer, or why it"
            " did nothing; `--disable RULE` switches it off."
        ),
        "",
        (
            "Some rules were renamed after 0.1.0: `raise-activation` is `hoist-activation`,"
            " `raise-activation-over-concat` is `hoist-activation-over-concat`, `decompose-batch-norm` is"
            " `decompose-batchnorm`. `fuse-linear` replaces `fuse-bias`, `fold-scale-into-weights`,"
            " `fold-scale-before-convolution` and `fold-shift-before-convolution`; its rows were measured with these four."
        ),
    ]
    for rule in RULES:
        parts = {s: p["rules"][rule.name] for s, p in settings.items() if rule.name in p.get("rules", {})}
        if not parts:
            continue
        lines += ["", f"## {rule.name}", "", rule.does, "", f"Refused when: {decapitalised(rule.refused)}"]
        for setting, shapes in parts.items():
            lines += ["", f"{setting}:", "", *rule_table(in_order(rule, shapes))]
    for setting, part in settings.items():
        if "chains" in part:
            lines += ["", f"## Chains of simple layers, {setting}", ""]
            lines.append(
                "Chains after a 1x1 convolution with a ReLU, 64 channels, 56x56: the time relative to that of"
                f" the convolution alone, by the number of stages. {SLOW:g} ns or more per element and stage is in"
                " bold: that operator has no vector code."
            )
            lines += ["", *chain_table(part["chains"])]
        if "binary" in part:
            lines += ["", f"## Binary convolutions beside f32, {setting}", ""]
            lines += rule_table(part["binary"], "bits, us", "f32, us")
    return "\n".join(lines) + "\n"


def in_order(rule: RulePage, shapes: Json) -> Json:
    """As in the list of cases; those of another machine's sizes behind."""
    return {case.name: shapes[case.name] for case in rule.cases if case.name in shapes} | shapes


def decapitalised(text: str) -> str:
    return text[0].lower() + text[1:]
