"""RGB's testbeds from a dataset and an index (section 2.2 of arXiv:2309.01431): the suite ``rgb-testbed`` does the work."""

from __future__ import annotations

from dataclasses import replace

from rallebench.core.experiments import Experiment, ExperimentRequest
from rallebench.experiments.builders import MAKERS
from rallebench.experiments.papers import SUITES

SUITE = "rgb-testbed"


@MAKERS.register("rgb", form=SUITES.entry(SUITE).form, articles=False)
def rgb(request: ExperimentRequest) -> Experiment:
    """RGB's records: positive, negative and false documents from an index, for the questions of a set or of articles."""
    report = yield from SUITES[SUITE](request)
    return replace(report, data={"records": dict(report.data.get("records", {}))})
