"""RGB's testbeds from a question set and an index (section 2.2 of arXiv:2309.01431): the suite ``rgb-testbed`` does the work."""

from __future__ import annotations

from rallebench.core.errors import UsageError
from rallebench.engine.driver import ExperimentResult
from rallebench.experiments.builders import MAKERS, Made, Order, Steps, Suite
from rallebench.experiments.papers import SUITES

SUITE = "rgb-testbed"


@MAKERS.register("rgb", form=SUITES.entry(SUITE).form, articles=False)
def rgb(order: Order) -> Steps:
    """RGB's records: positive, negative and false documents from an index, for the questions of a set or of articles."""
    given = {"articles": order.articles} if order.articles else {}
    if given and order.settings.get("articles"):
        raise UsageError(
            "The articles are given twice, by --articles and by --set articles=…; leave one out."
        )
    done: ExperimentResult = yield Suite(SUITE, {**order.settings, **given})
    files = {name: (text,) for name, text in done.report.files.items()}
    records = done.report.data.get("records", {})
    return Made((), files, {"records": dict(records)}, done.report.notes)
