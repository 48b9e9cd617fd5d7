"""The gate of a run for programs and people: JUnit XML and Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from rallebench.core.gating import Gate
from rallebench.core.report import Estimate
from rallebench.core.terminal import visible, visible_line
from rallebench.render.numbers import interval, text

MOST_LISTED = 20
"""Questions listed in a summary."""
KINDS = {"worse": "failure", "undecided": "error"}
"""Outcome → element of JUnit."""
_SPECIAL = re.compile(r"([\\`*_\[\]<>#!|~&])")
HEADS = {"passed": "Passed", "undecided": "Undecided", "worse": "Worse"}


def junit(gate: Gate) -> str:
    """Return the gate as JUnit XML: one test case, with a failure if the run is worse, an error if it is undecided."""
    outcome = gate.outcome
    counts = {kind + "s": str(int(KINDS.get(outcome) == kind)) for kind in KINDS.values()}
    counts["tests"] = "1"
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": "rallebench gate", **counts})
    listed = ElementTree.SubElement(suite, "properties")
    for name in ("metric", "new_mean", "base_mean", "difference", "low", "high"):
        _property(listed, name, getattr(gate, name))
    for name in ("margin", "confidence", "n", "units", "needed"):
        _property(listed, name, getattr(gate, name))
    title = visible_line(f"{gate.new} against {gate.base} by {gate.metric}")
    case = ElementTree.SubElement(suite, "testcase", classname="rallebench.gate", name=title)
    if outcome in KINDS:
        message = visible_line(gate.verdict)
        reason = ElementTree.SubElement(case, KINDS[outcome], type=outcome, message=message)
        reason.text = visible(gate.figures)
    output = ElementTree.SubElement(suite, "system-out")
    lines = [gate.verdict, gate.figures, *gate.warnings]
    lines += [f"worse on: {', '.join(gate.lost)}"] * bool(gate.lost)
    lines += [f"better on: {', '.join(gate.gained)}"] * bool(gate.gained)
    output.text = visible("\n".join(lines))
    ElementTree.indent(root)
    written: bytes = ElementTree.tostring(root, "utf-8", xml_declaration=True)
    return written.decode() + "\n"


def _property(parent: ElementTree.Element, name: str, value: str | float | None) -> None:
    if value is not None:
        words = visible_line(str(value))
        ElementTree.SubElement(parent, "property", name=name, value=words)


def markdown(gate: Gate) -> str:
    """Return the gate as Markdown: the outcome, a table, the warnings, and the questions that flipped."""
    gap = Estimate(gate.difference, gate.low, gate.high, gate.n)
    row = {
        "metric": gate.metric,
        "base": text(gate.base_mean),
        "new": text(gate.new_mean),
        "difference": text(gate.difference, "delta"),
        f"{gate.percent} interval": interval(gap, "delta", note=gate.note),
        "margin": f"{gate.margin:g}",
        "n": f"{gate.n:,}",
        gate.unit: f"{gate.units:,}",
    }
    lines = [f"### {HEADS[gate.outcome]}: {_plain(gate.new)} against {_plain(gate.base)}", ""]
    lines += [f"**{_plain(gate.verdict)}**", ""]
    rule = ["---"] * len(row)
    lines += [_row([*row]), _row(rule, escape=False), _row([*row.values()]), ""]
    lines += [f"- {_plain(warning)}" for warning in gate.warnings]
    for label, qids in (("Worse", gate.lost), ("Better", gate.gained)):
        if qids:
            first = ", ".join(map(_plain, qids[:MOST_LISTED]))
            rest = f" and {len(qids) - MOST_LISTED:,} more" * (len(qids) > MOST_LISTED)
            lines.append(f"- {label} on {len(qids):,}: {first}{rest}")
    return "\n".join(lines).rstrip() + "\n"


def _row(cells: Sequence[str], *, escape: bool = True) -> str:
    return f"| {' | '.join(map(_plain, cells) if escape else cells)} |"


def _plain(value: str) -> str:
    r"""Escape a text for Markdown, in one line.

    >>> print(_plain("a|b <i>"))
    a\|b \<i\>
    """
    return _SPECIAL.sub(r"\\\1", visible_line(value))
