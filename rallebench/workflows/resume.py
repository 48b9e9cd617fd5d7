"""An episode gone on with from the middle: after an edited action, say, without asking again what was answered before."""

from __future__ import annotations

from collections.abc import Sequence

from rallebench.core.types import Flow, Outcome, Reply


def continued(flow: Flow, replies: Sequence[Reply]) -> Flow:
    """``flow`` from where it stands after ``replies``, which answer its first requests in order; it asks only what comes then.

    The replies are those of an earlier episode's steps, the last one as it was edited. A program (PAL) that was paused
    among them is gone, so of such an episode give the replies before its program began.
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
