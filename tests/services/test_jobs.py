"""Jobs: work in threads that can be found again, followed from the beginning, stopped, and closed before the models."""

from __future__ import annotations

import gc
import logging
import threading
import weakref
from collections.abc import Iterator

import pytest

from rallebench.core.errors import BackendError, StoppedError, UsageError
from rallebench.core.events import Operation, Progress, Warned
from rallebench.services.jobs import Job, JobManager, job_pieces

SECONDS = 10


@pytest.fixture
def jobs() -> Iterator[JobManager]:
    manager = JobManager()
    yield manager
    manager.close(0)


class Gate:
    """Work with two events and a gate between them."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.closed = 0

    def work(self, job: Job) -> Operation[str]:
        try:
            yield Progress("a", 1, 2, "first")
            self.opened.wait(SECONDS)
            yield Progress("b", 2, 2)
            return "done"
        finally:
            self.closed += 1


def test_jobs_follow_hears_all_from_the_beginning_and_reads_results(jobs: JobManager) -> None:
    gate = Gate()
    job = jobs.submit("sweep", "ks", 1, gate.work)
    first = job.follow()
    next(first)
    gate.opened.set()
    assert [event.task for event in first] == ["b"]
    assert [event.task for event in list(job_pieces(job, str))[:-1]] == ["a", "b"]
    assert (job.status, job.result) == ("finished", "done")
    assert list(job.tasks) == ["a", "b"] and job.ended is not None and job.ended >= job.started


def test_jobs_submit_joins_the_same_work_and_refuses_other_of_that_name(jobs: JobManager) -> None:
    gate = Gate()
    job = jobs.submit("sweep", "ks", 1, gate.work)
    assert jobs.submit("sweep", "ks", 1, gate.work) is job
    with pytest.raises(UsageError, match="Another sweep is making 'ks' now; wait"):
        jobs.submit("sweep", "ks", 2, gate.work)
    other = jobs.submit("suite", "ks", 2, Gate().work)
    assert jobs.list(active=True) == (job, other) and jobs.list("suite") == (other,)


def test_jobs_stop_ends_the_work_at_its_next_event_and_releases_holds(jobs: JobManager) -> None:
    gate = Gate()
    job = jobs.submit("sweep", "ks", 1, gate.work)
    next(job.follow())
    jobs.stop("sweep ks")
    assert job.status == "stopping"
    gate.opened.set()
    with pytest.raises(StoppedError, match="was stopped; start it again to continue"):
        list(job.follow())
    assert (job.status, gate.closed) == ("stopped", 1)


def test_work_that_can_end_by_itself_is_asked_and_not_interrupted(jobs: JobManager) -> None:
    asked = threading.Event()

    def work(job: Job) -> Operation[str]:
        job.stop_by(asked.set)
        yield Progress("", 0)
        asked.wait(SECONDS)
        yield Progress("", 1, message="last batch")
        return "scored"

    job = jobs.submit("run", "r", 1, work)
    next(job.follow())
    job.stop()
    assert job.wait(SECONDS) and (job.status, job.result) == ("finished", "scored")
    assert job.message == "last batch"


def test_a_stop_before_the_work_says_how_it_stops_is_not_lost(jobs: JobManager) -> None:
    asked, begin = threading.Event(), threading.Event()

    def work(job: Job) -> Operation[None]:
        begin.wait(SECONDS)
        job.stop_by(asked.set)
        yield Progress("", 0)

    job = jobs.submit("run", "r", 1, work)
    job.stop()
    begin.set()
    assert job.wait(SECONDS) and asked.is_set()


def test_an_unexpected_error_is_a_sentence_for_followers_and_a_traceback_in_the_log(
    jobs: JobManager, caplog: pytest.LogCaptureFixture
) -> None:
    def work(job: Job) -> Operation[None]:
        yield Warned("", "beware")
        raise KeyError("bug")

    with caplog.at_level(logging.ERROR):
        job = jobs.submit("build", "x", 1, work)
        with pytest.raises(BackendError, match="The build of 'x' failed: KeyError: 'bug'"):
            list(job.follow())
    assert job.status == "failed" and job.warning == "beware" and "Traceback" in caplog.text


def test_jobs_get_and_list_know_an_ended_job_until_forgotten_or_anew(jobs: JobManager) -> None:
    gate = Gate()
    gate.opened.set()
    job = jobs.submit("import", "x", 1, gate.work)
    assert job.wait(SECONDS) and jobs.get("import", "x") is job
    again = jobs.submit("import", "x", 2, gate.work)
    assert again is not job and again.wait(SECONDS)
    jobs.forget("import x")
    assert jobs.get("import", "x") is None
    jobs.forget("import x")
    with pytest.raises(UsageError, match="There is no job 'import x'"):
        jobs.stop("import x")


def test_jobs_forget_leaves_an_active_job(jobs: JobManager) -> None:
    job = jobs.submit("import", "x", 1, Gate().work)
    jobs.forget("import x")
    assert jobs.get("import", "x") is job


def test_work_anew_does_not_join_what_is_stopping(jobs: JobManager) -> None:
    gate = Gate()
    first = jobs.submit("load", "m", 1, gate.work)
    next(first.follow())
    first.stop()
    second = jobs.submit("load", "m", 1, Gate().work, anew=True)
    assert second is not first and not first.done
    assert jobs.list("load", active=True) == (first, second)
    gate.opened.set()
    assert first.wait(SECONDS) and jobs.get("load", "m") is second
    assert jobs.list("load") == (second,)


def test_work_that_cannot_begin_leaves_no_job_that_seems_to_run(
    jobs: JobManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(job: Job) -> Operation[str]:
        raise UsageError("There is no chain 'c'.")

    with pytest.raises(UsageError, match="no chain 'c'"):
        jobs.submit("run", "r", 1, refuse)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", raise_no_thread)
        with pytest.raises(BackendError, match="The run of 'r' failed: RuntimeError: no thread"):
            jobs.submit("run", "r", 1, Gate().work)
    assert jobs.list() == () and jobs.submit("run", "r", 2, Gate().work).status == "running"


def raise_no_thread(thread: threading.Thread) -> None:
    raise RuntimeError("no thread")


def test_an_ended_job_lets_go_of_what_could_have_stopped_it(jobs: JobManager) -> None:
    class Episode:
        def stop(self) -> None: ...

    episode = Episode()
    reference = weakref.ref(episode)

    def work(job: Job) -> Operation[None]:
        nonlocal episode
        job.stop_by(episode.stop)
        del episode
        yield Progress("", 0)

    job = jobs.submit("episode", "e", 1, work)
    assert job.wait(SECONDS)
    gc.collect()
    assert reference() is None


def test_progress_is_collapsed_for_late_followers_and_the_rest_is_kept(jobs: JobManager) -> None:
    def work(job: Job) -> Operation[None]:
        for done in range(50):
            yield Progress("a", done, 50, "running")
        yield Warned("a", "beware")
        yield Progress("a", 50, 50, "running")
        yield Progress("a", 50, 50, "scoring")
        yield Progress("b", 1, 1, "scoring")

    job = jobs.submit("run", "r", 1, work)
    assert job.wait(SECONDS)
    events = list(job.follow())
    assert [(event.task, getattr(event, "done", None)) for event in events] == [
        ("a", 49),
        ("a", None),
        ("a", 50),
        ("a", 50),
        ("b", 1),
    ]
    assert job.tasks == {"a": events[3], "b": events[4]} and job.warning == "beware"
    assert (job.message, job.newest, job.version) == ("scoring", events[4], 55)


def test_after_closing_no_work_begins() -> None:
    jobs = JobManager()
    jobs.close(SECONDS)
    with pytest.raises(UsageError, match="The workbench is closed; start rallebench again"):
        jobs.submit("sweep", "ks", 1, Gate().work)
    assert jobs.list() == ()


def test_jobs_close_stops_every_job_and_waits_for_its_end() -> None:
    jobs, gate = JobManager(), Gate()
    job = jobs.submit("sweep", "ks", 1, gate.work)
    next(job.follow())
    threading.Timer(0.05, gate.opened.set).start()
    jobs.close(SECONDS)
    assert job.done and job.status == "stopped"


def test_a_job_may_import_what_makes_loggers_while_pytest_goes_through_them() -> None:
    for number, _ in zip(range(3), logging.root.manager.loggerDict.values()):
        logging.getLogger(f"rallebench.tests.beside.{number}")
