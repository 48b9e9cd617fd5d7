"""Resume an episode after a given step, for example after an edited action, without repeating its requests."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.core.types import Flow, Outcome, Reply


def continued(flow: Flow, replies: Sequence[Reply]) -> Flow:
    """The rest of ``flow`` after its first requests, which ``replies`` answer in order.

    The replies are those of an earlier episode's steps, the last one possibly edited. A paused program (PAL) cannot be
    resumed: for such an episode, pass only the replies before the program began.
    """
    try:
        request = next(flow)
        for reply in replies:
            request = flow.send(reply)
        while True:
            request = flow.send((yield request))
    except StopIteration as end:
        outcome: Outcome = end.value
        return outcome
    finally:
        flow.close()
