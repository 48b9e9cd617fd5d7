"""One benchmark from request to report: check, load, ask, score, write RaLLe's files, track."""

from rallebench.services.benchmark.baselines import LABELS, line_plans, lines, lines_of
from rallebench.services.benchmark.checking import check_chain
from rallebench.services.benchmark.overrides import MAX_K, with_overrides
from rallebench.services.benchmark.planning import PACKAGES, Plan, fresh_name, prepare, run_spec
from rallebench.services.benchmark.running import HEADLINE, Finished, Phase, Stage, execute, finish

__all__ = [
    "HEADLINE",
    "LABELS",
    "MAX_K",
    "PACKAGES",
    "Finished",
    "Phase",
    "Plan",
    "Stage",
    "check_chain",
    "execute",
    "finish",
    "fresh_name",
    "line_plans",
    "lines",
    "lines_of",
    "prepare",
    "run_spec",
    "with_overrides",
]
