"""The share and the time left of a job: one figure, from complete batches, never 100 % while work is left."""

from __future__ import annotations

from typing import Any

import pytest

from rallebench.core.events import Event, IndexReady, Operation, Progress, complete
from rallebench.core.forecast import Forecast, PlannedRun, Range
from rallebench.gui import jobs as chip
from rallebench.services.experiments import _count_progress
from rallebench.services.jobs import Job


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def counting_job(*counts: tuple[float, int], total: int | None = 100) -> tuple[Job, Clock]:
    """A job with these (time, count)."""
    clock = Clock()
    job = Job("run", "r", clock=clock)
    for now, done in counts:
        clock.now = now
        job.publish(Progress("r", done, total))
    return job, clock


def left_at(job: Job, clock: Clock, now: float) -> float | None:
    clock.now = now
    assert job.standing is not None
    return job.standing.left


def test_no_time_is_left_to_say_before_two_batches_are_complete() -> None:
    batch = [(20 + 0.01 * i, i) for i in range(1, 21)]
    second = [(40 + 0.01 * i, 20 + i) for i in range(1, 21)]
    job, clock = counting_job((0, 0), *batch)
    assert left_at(job, clock, 39) is None
    job, clock = counting_job((0, 0), *batch, *second[:3])
    assert left_at(job, clock, 40.1) is None, "the second batch is still coming in"
    job, clock = counting_job((0, 0), *batch, *second)
    assert left_at(job, clock, 41) == pytest.approx(60, abs=2)


def test_the_time_left_runs_down_while_a_batch_is_asked() -> None:
    job, clock = counting_job((0, 0), (10, 20), (20, 40))
    assert left_at(job, clock, 21) == pytest.approx(29)
    assert left_at(job, clock, 29) == pytest.approx(21)


def test_no_time_is_left_to_say_while_nothing_comes() -> None:
    job, clock = counting_job((0, 0), (10, 20), (20, 40))
    assert left_at(job, clock, 45) is not None
    assert left_at(job, clock, 60) is None


def test_a_resumed_run_is_timed_from_where_it_began_again() -> None:
    job, clock = counting_job((0, 60), (10, 70), (20, 80))
    assert left_at(job, clock, 21) == pytest.approx(19)


def test_the_time_of_one_stage_says_nothing_of_the_next() -> None:
    job, clock = counting_job((0, 0), (10, 50), (20, 100), (30, 0), (40, 20))
    assert left_at(job, clock, 41) is None


def test_a_job_whose_total_is_unknown_has_no_share_even_if_a_part_of_it_has_one() -> None:
    job, _ = counting_job((0, 3), total=None)
    assert job.standing is None and chip.done_share(job) is None and chip.progress_words(job) == ""
    job.publish(Progress("r/reader", 30, 200))
    assert job.standing is None


def test_all_counted_is_not_all_done_while_the_job_goes_on() -> None:
    job, clock = counting_job((0, 0), (10, 50), (20, 100))
    clock.now = 30
    assert job.standing is not None and job.standing.share < 1 and job.standing.left is None
    assert "left" not in chip.progress_words(job)


def test_the_chip_and_the_row_of_a_job_say_the_same_time() -> None:
    job, clock = counting_job((0, 0), (10, 20), (20, 40))
    clock.now = 21
    assert "40 % · about 30 s left" in chip._chip([job], [], 0)
    assert chip.progress_words(job) == "40 of 100 · about 30 s left"
    assert "40 of 100 · about 30 s left" in chip.row(job, "r")


# an experiment that builds indexes


def make_plan(builds: int, **more: Any) -> Forecast:
    asked = Range(30, 30)
    runs = tuple(
        PlannedRun(f"size={i}", "", "chain", "d", 30, 30, asked, asked, ("m",), ("i",))
        for i in range(2)
    )
    return Forecast("sweep", "s", runs, indexes=builds, builds=("recipe",) * builds, **more)


def list_shares(planned: Forecast, *events: Event) -> list[float | None]:
    """The share of a job after each of these events."""

    def work() -> Operation[Any]:
        yield from events

    job = Job("sweep", "s", clock=Clock())
    shares: list[float | None] = []

    def hear(event: Event) -> None:
        job.publish(event)
        shares.append(job.standing.share if job.standing else None)

    complete(_count_progress(work(), planned), hear)
    return shares


def test_passages_that_are_encoded_are_no_answered_questions() -> None:
    building = [Progress("size=0", i, 900, "encoding passages") for i in range(0, 901, 60)]
    shares = [share for share in list_shares(make_plan(2), *building) if share is not None]
    assert shares == sorted(shares) and 0.1 < shares[-1] < 0.25, "an index of two, of two runs"


def test_building_is_a_part_of_the_whole_until_the_last_question() -> None:
    whole: list[Event] = []
    for i in range(2):
        whole += [Progress(f"size={i}", 450, 900, "encoding passages")]
        whole += [IndexReady(f"size={i}", f"index-{i}", True)]
        whole += [Progress(f"size={i}", done, 30) for done in (0, 15, 30)]
    shares = [share for share in list_shares(make_plan(2), *whole) if share is not None]
    assert shares == sorted(shares) and shares[-1] == 0.99
    halfway = list_shares(make_plan(2), *whole[:5])[-1]
    assert halfway == pytest.approx(0.5)


def test_no_time_is_left_to_say_while_an_index_must_still_be_built() -> None:
    clock = Clock()
    job = Job("sweep", "s", clock=clock)
    for now, done in ((0, 0), (10, 10), (20, 20), (30, 30)):
        clock.now = now
        job.publish(Progress("", done, 60, runs=2, indexes=2, built=1.0))
    clock.now = 31
    assert job.standing is not None and job.standing.left is None
    job.publish(Progress("", 30, 60, runs=2, indexes=2, built=2.0))
    assert job.standing.left is not None


def test_an_index_that_was_there_after_all_is_not_waited_for() -> None:
    ready = [IndexReady(f"size={i}", f"index-{i}", False) for i in range(2)]
    assert list_shares(make_plan(2), *ready)[-1] == pytest.approx(0.5)


def test_an_experiment_whose_rows_come_first_has_no_share() -> None:
    shares = list_shares(make_plan(0, rows=("facts",)), Progress("size=0", 30, 30))
    assert set(shares) == {None}
