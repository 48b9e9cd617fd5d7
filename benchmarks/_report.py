"""The common parts of the benchmarks: rounds and their spread, the questions, the lines that are printed.

A benchmark imports this module before anything that imports numpy: it then sets the thread counts,
on purpose, to one, so that a figure says what the code costs and not how many cores were free.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

THREADS = 1
ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(THREADS)),
    "OMP_WAIT_POLICY": "PASSIVE",
    "HF_HUB_OFFLINE": "1",
    "GRADIO_ANALYTICS_ENABLED": "False",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
}
if Path(sys.argv[0]).resolve().parent == Path(__file__).resolve().parent:
    os.environ.update(ENVIRONMENT)

SEED = 20240229

T = TypeVar("T")


@dataclass(frozen=True)
class Measure:
    """A figure over several rounds.

    ``bare``: the same work by the bare library or by direct calls, in the same rounds.

    ``most`` or ``least`` is the target that the median has to keep.
    """

    name: str
    unit: str
    samples: Sequence[float]
    bare: Sequence[float] = ()
    bare_name: str = ""
    most: float | None = None
    least: float | None = None

    @property
    def median(self) -> float:
        """The middle of the rounds."""
        return statistics.median(self.samples)

    @property
    def ratio(self) -> float | None:
        """Ratio of this figure's median to the bare one's; None without a comparison."""
        return self.median / statistics.median(self.bare) if self.bare else None

    @property
    def met(self) -> bool | None:
        """True if the median meets the target; None without a target."""
        if self.most is None and self.least is None:
            return None
        return (self.most is None or self.median <= self.most) and (
            self.least is None or self.median >= self.least
        )

    def to_json(self) -> dict[str, Any]:
        """Every figure, JSON-able."""
        value: dict[str, Any] = {
            "name": self.name,
            "unit": self.unit,
            "min": min(self.samples),
            "median": self.median,
            "samples": list(self.samples),
        }
        if self.bare:
            value["bare"] = {
                "name": self.bare_name,
                "min": min(self.bare),
                "median": statistics.median(self.bare),
            }
            value["ratio"] = self.ratio
        if self.met is not None:
            value |= {"most": self.most, "least": self.least, "met": self.met}
        return value

    def line(self) -> str:
        """One line for people."""
        least = _short(min(self.samples))
        text = f"{self.name}: {_short(self.median)} {self.unit} (min {least}, rounds {len(self.samples)})"
        if self.ratio is not None:
            bare = _short(statistics.median(self.bare))
            text += f", {self.ratio:.2f} times {self.bare_name} ({bare} {self.unit})"
        if self.met is not None:
            bound = (
                f"at most {self.most:g}" if self.most is not None else f"at least {self.least:g}"
            )
            text += f"; target {bound} {self.unit}: {'met' if self.met else 'MISSED'}"
        return text


def _short(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


@dataclass(frozen=True)
class Fact:
    """Something that must be so on every machine, however slow; otherwise the figures are worthless."""

    name: str
    value: Any
    expected: Any

    @property
    def met(self) -> bool:
        """True if the fact holds."""
        return bool(self.value == self.expected)

    def line(self) -> str:
        """One line for people."""
        return f"{self.name}: {self.value}" + (
            "" if self.met else f"; expected {self.expected}: WRONG"
        )


@dataclass
class Report:
    """The results of one benchmark."""

    benchmark: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    measures: list[Measure] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The whole report, JSON-able."""
        return {
            "benchmark": self.benchmark,
            "settings": dict(self.settings),
            "machine": {
                "python": platform.python_version(),
                "platform": platform.platform(),
                "cpus": os.cpu_count(),
                "threads": THREADS,
            },
            "measures": [measure.to_json() for measure in self.measures],
            "facts": [
                {"name": f.name, "value": f.value, "expected": f.expected, "met": f.met}
                for f in self.facts
            ],
            "notes": self.notes,
        }

    def lines(self) -> list[str]:
        """The report for people."""
        settings = ", ".join(f"{key} {value}" for key, value in self.settings.items())
        rows = (
            [measure.line() for measure in self.measures]
            + [fact.line() for fact in self.facts]
            + self.notes
        )
        return [f"{self.benchmark} ({settings})", *(f"  {row}" for row in rows)]

    def exit_code(self, strict: bool = False) -> int:
        """1 if a fact is wrong, or, when ``strict``, a target is missed."""
        missed = strict and any(measure.met is False for measure in self.measures)
        return 1 if missed or not all(fact.met for fact in self.facts) else 0

    def tell(self, arguments: argparse.Namespace) -> int:
        """Print the report as the flags ask; return the exit code."""
        if arguments.json:
            print(json.dumps(self.to_json(), ensure_ascii=False, indent=2))
        else:
            print("\n".join(self.lines()))
        return self.exit_code(arguments.strict)


def parser(about: str | None, *, rounds: int) -> argparse.ArgumentParser:
    """The flags that every benchmark has."""
    flags = argparse.ArgumentParser(description=(about or "").split("\n")[0])
    flags.add_argument("--json", action="store_true", help="print one JSON document")
    flags.add_argument(
        "--quick", action="store_true", help="a small size that only shows that the script works"
    )
    flags.add_argument(
        "--strict", action="store_true", help="exit with 1 also when a target is missed"
    )
    flags.add_argument("--rounds", type=int, default=rounds, metavar="N", help=f"default: {rounds}")
    return flags


@dataclass(frozen=True)
class Took:
    """The seconds of a call: by the clock, and of the processor in all threads of this process.

    On a machine that others use too, the second says more about the code.
    """

    wall: float
    processor: float


def timed(call: Callable[[], T]) -> tuple[Took, T]:
    """(the seconds of a call, its value); garbage of earlier rounds is collected before."""
    gc.collect()
    started, used = time.perf_counter(), time.process_time()
    value = call()
    return Took(time.perf_counter() - started, time.process_time() - used), value


def child_environment() -> dict[str, str]:
    """The environment of another Python: it finds this checkout, uses one thread and no network."""
    path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, **ENVIRONMENT, "PYTHONPATH": path}


def starter_records(count: int, seed: int = SEED) -> list[dict[str, Any]]:
    """``count`` KILT records with the gold of the starter's questions and texts that are all different.

    From the second pass over the starter's questions on, two words of its corpus follow the
    question, so that every question is a query of its own.
    """
    drawn = random.Random(seed)
    starter = PROJECT / "rallebench" / "starter"
    rows = [
        json.loads(line)
        for path in sorted((starter / "questions").glob("*.jsonl"))
        if not path.name.startswith("starter-scholar-")  # no page answers them
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    words = sorted({word for word in starter_words() if word.isalpha() and len(word) > 3})
    records: list[dict[str, Any]] = []
    seen: set[str] = set()
    while len(records) < count:
        row = rows[len(records) % len(rows)]
        text = row["input"]
        while text in seen:
            text = f"{row['input']} ({drawn.choice(words)} {drawn.choice(words)})"
        seen.add(text)
        records.append(
            {"id": f"q{len(records):05d}", "input": text, "output": row.get("output", [])}
        )
    return records


def starter_words() -> Iterable[str]:
    """The words of the starter's corpus, in order."""
    text = (PROJECT / "rallebench" / "starter" / "corpus.tsv").read_text(encoding="utf-8")
    return (
        word.strip(".,;:()\"'")
        for line in text.splitlines()[1:]
        for word in line.split("\t")[1].split()
    )
