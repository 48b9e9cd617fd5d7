"""RGB's testbeds from a dataset and an index (section 2.2 of arXiv:2309.01431): the suite ``rgb-testbed`` does the work."""

from __future__ import annotations

from dataclasses import replace

from rallebench.core.experiments import Experiment, ExperimentRequest
from rallebench.experiments import EXPERIMENTS
from rallebench.experiments.papers.rgb.from_index import SETTINGS, testbed


@EXPERIMENTS.register("build-rgb", place="builders", form=SETTINGS, needs_llm=False, articles=False)
def rgb(request: ExperimentRequest) -> Experiment:
    """RGB's records: positive, negative and false documents from an index, for the questions of a set or of articles."""
    report = yield from testbed(request)
    return replace(report, data={"records": dict(report.data.get("records", {}))})
