"""A stop wakes every wait once, and no wait that has ended."""

from __future__ import annotations

import threading

import pytest

from rallebench.core.errors import StoppedError
from rallebench.core.stopping import Stop, obey, stop_of_thread


def test_a_stop_wakes_what_waits_also_what_begins_to_wait_later() -> None:
    stop, early, late, over = Stop(), threading.Event(), threading.Event(), threading.Event()
    with stop.waking(over.set):
        pass
    with stop.waking(early.set):
        stop.set()
    with stop.waking(late.set):
        assert early.is_set() and late.is_set() and not over.is_set()
    with pytest.raises(StoppedError):
        stop.check()


def test_each_thread_obeys_its_own_stop() -> None:
    stop, heard = Stop(), list[bool]()

    def work() -> None:
        obey(stop)
        heard.append(stop_of_thread() is stop)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert heard == [True] and stop_of_thread() is not stop and not stop_of_thread().is_set()
