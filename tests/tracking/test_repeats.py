"""The spread over repeats among the figures that MLflow keeps."""

from __future__ import annotations

from rallebench.core.repeats import MetricRepeats, RepeatReport
from rallebench.core.report import RunReport
from rallebench.tracking.metrics import metrics_table


def test_the_table_of_a_run_has_the_spread_of_each_metric() -> None:
    spread = MetricRepeats(8, 0.25, 0.125, 0.5, (0.5, 0.75), (0.5, 0.25))
    table = metrics_table(RunReport(repeats=RepeatReport(2, 2, {}, {"em": spread})), None)
    figures = {row[0]: row[1] for row in table.rows if row[-1] == "repeats"}
    assert figures == {
        "repeats": 2,
        "em_between_questions": 0.25,
        "em_between_repeats": 0.125,
        "em_unstable": 0.5,
        "em_pass@1": 0.5,
        "em_pass@2": 0.75,
        "em_pass^1": 0.5,
        "em_pass^2": 0.25,
    }


def test_a_run_without_repeats_has_no_such_rows() -> None:
    assert all(row[-1] != "repeats" for row in metrics_table(RunReport(), None).rows)
