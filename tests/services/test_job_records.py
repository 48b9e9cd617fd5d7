"""Records of jobs: a later program learns which jobs ended with their process, however it ended."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from rallebench.services.job_records import JobRecords
from rallebench.services.jobs import JobManager, JobWork

KILLED = """
import os, signal, sys
from pathlib import Path
from rallebench.services.job_records import JobRecords
JobRecords(Path(sys.argv[1])).add("import", "docs", {"name": "docs"})
os.kill(os.getpid(), signal.SIGKILL)
"""


def names(records: JobRecords) -> list[str]:
    return [record.id for record in records.list_interrupted()]


def work() -> JobWork:
    yield "beginning"


def waiting_work() -> JobWork:
    while True:
        yield "again"


def test_a_job_of_a_killed_process_is_interrupted_with_its_request(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)])
    assert ended.returncode != 0
    (record,) = JobRecords(tmp_path).list_interrupted()
    assert (record.id, record.detail) == ("import docs", {"name": "docs"})


def test_a_job_of_a_living_process_is_not_interrupted(tmp_path: Path) -> None:
    mine, other = JobRecords(tmp_path), JobRecords(tmp_path)
    mine.add("import", "docs", {})
    assert names(other) == [] and names(mine) == []
    mine.close()
    assert names(other) == ["import docs"]


def test_the_next_job_of_the_name_takes_the_place_of_an_interrupted_one(tmp_path: Path) -> None:
    before, now = JobRecords(tmp_path), JobRecords(tmp_path)
    before.add("import", "docs", {})
    before.add("build", "docs", {})
    before.close()
    now.add("import", "docs", {})
    assert names(now) == ["build docs"]
    now.forget("build docs")
    assert names(now) == [] and len(list((tmp_path / "jobs").glob("*.json"))) == 1


def test_damaged_records_and_a_folder_that_cannot_be_written_fail_no_job(tmp_path: Path) -> None:
    before = JobRecords(tmp_path)
    before.add("import", "docs", {})
    before.close()
    for path in (tmp_path / "jobs").glob("*.json"):
        path.write_text("{")
    assert names(JobRecords(tmp_path)) == []
    (tmp_path / "file").write_text("")
    assert JobRecords(tmp_path / "file").add("import", "docs", {}) is None


def test_only_jobs_that_a_person_did_not_end_are_interrupted(tmp_path: Path) -> None:
    jobs, later = JobManager(), JobManager()
    jobs.record_in(tmp_path)
    later.record_in(tmp_path)
    done = jobs.submit("build", "done", "", lambda job: work(), record={})
    stopped = jobs.submit("build", "stopped", "", lambda job: waiting_work(), record={})
    unrecorded = jobs.submit("load", "model", "", lambda job: waiting_work())
    jobs.submit("build", "cut", "", lambda job: waiting_work(), record={"kind": "bm25"})
    stopped.stop()
    assert done.wait(20) and stopped.wait(20) and not unrecorded.done
    jobs.close(20)
    assert [record.id for record in later.list_interrupted()] == ["build cut"]
    assert jobs.list_interrupted() == (), "its own jobs are not told"
    later.forget("build cut")
    assert later.list_interrupted() == () and list((tmp_path / "jobs").iterdir()) == []
