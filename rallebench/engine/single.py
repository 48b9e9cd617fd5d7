"""Run one flow live: the start and end of every step, and the model's text as it arrives. Also resume an earlier flow."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing

from rallebench.core.backends import Backends, StreamingLLM
from rallebench.core.choosing import Choose
from rallebench.core.errors import RalleError, StoppedError
from rallebench.core.live import Delta, Event, StepDone, StepStarted
from rallebench.core.surrogates import pair_stream
from rallebench.core.thinking import parted_stream, split_thoughts, with_room
from rallebench.core.types import Episode, Flow, Generate, Note, Outcome, Reply, Request, Step
from rallebench.engine.perform import as_ralle_error, flow_error, perform, prepare_request
from rallebench.engine.reply_cache import ReplyCache


def run_one(
    flow: Flow,
    backends: Backends,
    *,
    qid: str = "",
    workflow: str = "chain",
    reply_cache: ReplyCache | None = None,
    stream: bool = False,
) -> Iterator[Event]:
    """Yield events, the Episode last. An error is part of the Episode and never raised, except StoppedError.

    Closing the iterator stops the flow, even in the middle of a stream.
    """
    steps: list[Step] = []
    reply: Reply | None = None
    started: float | None = None
    try:
        while True:
            request = prepare_request(
                flow.send(reply) if reply is not None else next(flow), backends
            )
            yield StepStarted(len(steps), request)
            step, started = None, time.perf_counter()
            for piece in _ask(request, backends, reply_cache, stream):
                if isinstance(piece, Step):
                    step = piece
                else:
                    yield Delta(len(steps), piece)
            assert step is not None
            started = None
            yield StepDone(len(steps), step)
            steps.append(step)
            reply = step.reply
    except StopIteration as ended:
        outcome: Outcome = ended.value
        yield Episode(qid, workflow, tuple(steps), outcome)
    except StoppedError:
        raise
    except Exception as error:
        lost = time.perf_counter() - started if started is not None else 0.0
        cause = flow_error(error).with_traceback(None)  # its frames hold references to the backends
        yield Episode(qid, workflow, tuple(steps), None, str(cause), lost, cause)
    finally:
        flow.close()


def answer_one(request: Request, backends: Backends, reply_cache: ReplyCache | None = None) -> Step:
    """Answer one request, from the cache if possible. Raises RalleError."""
    for piece in _ask(request, backends, reply_cache, stream=False):
        if isinstance(piece, Step):
            return piece
    raise AssertionError("a request always ends in a step")


def _ask(
    request: Request, backends: Backends, reply_cache: ReplyCache | None, stream: bool
) -> Iterator[str | Step]:
    if isinstance(request, Note):
        yield Step(request, request.reply())
        return
    cached = reply_cache.get(request, backends) if reply_cache else None
    if cached is not None:
        yield cached.step(request)
        return
    started = time.perf_counter()
    answered: Reply | RalleError | None = None
    writes = isinstance(request, Generate) and not isinstance(request, Choose)
    llm = backends.of(request) if stream and writes else None
    if isinstance(request, Generate) and isinstance(llm, StreamingLLM):
        try:
            with closing(llm.stream(request)) as pieces:
                for piece in parted_stream(pair_stream(pieces)):
                    if isinstance(piece, Reply):
                        answered = split_thoughts(piece, request.llm)
                        if wider := with_room(request, answered):
                            answered = perform([wider], backends)[0]
                    else:
                        yield piece
        except Exception as error:
            raise as_ralle_error(error, request) from error
    if answered is None:
        answered = perform([request], backends)[0]
    if isinstance(answered, RalleError):
        raise answered
    seconds = time.perf_counter() - started
    if reply_cache:
        reply_cache.put([(request, answered, seconds)], backends)
    yield Step(request, answered, seconds)


def resume_from(flow: Flow, replies: Sequence[Reply]) -> Flow:
    """The rest of ``flow`` after its first requests, which ``replies`` answer in order.

    The replies come from an earlier episode's steps, the last one possibly edited. A paused program (PAL) cannot be
    resumed: for such an episode, pass only the replies from before the program began.
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
