"""The number of requests in flight adapts to the server, within its limit and the user's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from asking import ask
from loopback import (
    Behaviour,
    Handler,
    Loopback,
    answer,
    completion,
    echo,
    fail,
    good_stream,
    hang,
    send_json,
)

from rallebench.core.types import Generate
from rallebench.http.failures import remainder
from rallebench.http.limiter import Rate, RequestWindow

Load = Callable[..., Any]


def many(count: int) -> list[Generate]:
    return [ask(str(number)) for number in range(count)]


def texts(replies: list[Any]) -> list[str]:
    return [reply.text for reply in replies]


def together(*llms: Any, requests: int) -> None:
    """Each model answers this number of requests, all at the same time."""
    threads = [threading.Thread(target=llm.generate, args=(many(requests),)) for llm in llms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)


# ── the window ───────────────────────────────────────────────────────────────


def crowded_above(bearable: int) -> Behaviour:
    """Refuse requests while more than this number are in flight."""

    def behave(handler: Handler) -> None:
        if handler.owner.in_flight > bearable:
            fail(429, "slow down")(handler)
        else:
            handler.wait(0.01)
            echo(handler)

    return behave


def test_a_server_that_turns_requests_away_is_asked_with_fewer_until_answered(load: Load) -> None:
    with Loopback(crowded_above(4)) as server:
        llm = load(server, concurrency=16, max_retries=50)
        assert texts(llm.generate(many(80))) == [str(number) for number in range(80)]
        status = llm.status()
        assert status.throttled > 0
        assert 1 <= status.window < 12
        turned_away = len(server.bodies) - 80
        assert turned_away < 80
        assert f"{status.window} of 16 requests at once (the server was overloaded" in llm.about


def slowly(handler: Handler) -> None:
    handler.wait(0.01)
    echo(handler)


def test_the_window_of_a_server_that_is_well_stays_what_the_user_chose(load: Load) -> None:
    with Loopback(slowly) as server:
        llm = load(server, concurrency=4)
        llm.generate(many(60))
        assert llm.status().window == 4
        assert server.most_in_flight < 8
        assert llm.about == f"m at {server.url}"


def test_two_models_at_one_address_share_one_window(load: Load) -> None:
    def wait_for_others(handler: Handler) -> None:
        handler.owner.until(lambda: handler.owner.most_in_flight >= 4)
        slowly(handler)

    with Loopback(wait_for_others) as server:
        models = [load(server, concurrency=4, model=model) for model in ("a", "b")]
        together(*models, requests=20)
        assert len(server.bodies) == 40
        # The server counts an answer for a moment after it was read; two windows would make 8.
        assert 4 <= server.most_in_flight < 8
        assert {model.status().most for model in models} == {4}


def test_threads_that_share_a_model_each_get_their_own_answers(load: Load) -> None:
    answers: dict[int, list[str]] = {}
    with Loopback(echo) as server:
        llm = load(server, concurrency=8)

        def work(number: int) -> None:
            requests = [ask(f"{number}-{turn}") for turn in range(5)]
            answers[number] = texts(llm.generate(requests))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert answers == {n: [f"{n}-{turn}" for turn in range(5)] for n in range(8)}


def test_a_pause_before_another_try_takes_no_room(load: Load) -> None:
    def first_fails(handler: Handler) -> None:
        again = sum(body == handler.body for body in handler.owner.bodies) > 1
        first = handler.body["messages"][-1]["content"] == "0" and not again
        (fail(500) if first else echo)(handler)

    with Loopback(first_fails) as server:
        llm = load(server, concurrency=8, backoff=0.8)
        assert llm.concurrency > 8
        llm.generate(many(30))
        assert server.bodies[-1]["messages"][-1]["content"] == "0"
        assert server.most_in_flight < 16


def test_a_person_does_not_wait_behind_a_run(load: Load) -> None:
    def run_hangs(handler: Handler) -> None:
        (good_stream("at once") if handler.body["stream"] else hang(3.0))(handler)

    with Loopback(run_hangs) as server:
        llm = load(server, concurrency=1, max_retries=0)
        run = threading.Thread(target=llm.generate, args=([ask()],))
        run.start()
        assert server.until(lambda: server.in_flight == 1)
        *_, reply = llm.stream(ask("And I?"))
        assert reply.text == "at once"
        assert run.is_alive()
        llm.close()
        run.join(5)


def test_closing_wakes_who_waits_for_room_and_who_waits_for_an_answer(load: Load) -> None:
    before = set(threading.enumerate())
    with Loopback(hang()) as server:
        llm = load(server, concurrency=2, timeout=60)
        results: list[Any] = []
        threads = [
            threading.Thread(target=lambda: results.extend(llm.generate([ask()]))) for _ in range(6)
        ]
        for thread in threads:
            thread.start()
        assert server.until(lambda: server.in_flight == 2)
        started = time.monotonic()
        llm.close()
        for thread in threads:
            thread.join(5)
        assert time.monotonic() - started < 2.0
        assert [str(result) for result in results] == [
            "'gpt' was unloaded; load it again to use it."
        ] * 6
    # The test server's own threads end a moment after it closes; a thread of the client would never end.
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive(), thread.name


def test_one_connection_serves_many_requests_also_after_errors_and_streams(load: Load) -> None:
    def in_turn(handler: Handler) -> None:
        if handler.body["stream"]:
            handler.start(
                200, {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
            )
            event = b'data: {"choices": [{"delta": {"content": "x"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
            handler.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(event), event))
        else:
            (fail(500) if len(handler.owner.bodies) % 5 == 1 else echo)(handler)

    with Loopback(in_turn) as server:
        llm = load(server, concurrency=1)
        llm.generate(many(10))
        for _ in range(3):
            list(llm.stream(ask()))
        assert len(server.bodies) > 13
        assert server.connections == 1


@pytest.mark.parametrize(
    ("status", "throttled", "window"), [(503, 1, 5), (529, 1, 5), (408, 1, 5), (500, 0, 8)]
)
def test_other_signs_of_a_crowd_shrink_the_window_too_and_a_bug_of_the_server_does_not(
    load: Load, status: int, throttled: int, window: int
) -> None:
    with Loopback(fail(status), answer()) as server:
        llm = load(server, concurrency=8)
        llm.generate([ask()])
        assert (llm.status().throttled, llm.status().window) == (throttled, window)


def answered(window: RequestWindow, rounds: int, start: float) -> None:
    """Rounds of answers to full windows, one second each."""
    for second in range(rounds):
        for _ in range(window.size):
            window.grow(start + second)


def test_a_burst_of_refusals_cuts_the_window_once_and_it_grows_back_by_one_a_round() -> None:
    window = RequestWindow(16)
    for _ in range(10):
        window.throttle(1.0, 2.0)
    assert window.size == 11
    for rounds, start, sizes in ((1, 1.0, (11,)), (1, 3.0, (11, 12)), (8, 4.0, (16,))):
        answered(window, rounds, start)  # requests of 1.0 were sent before the cut
        assert window.size in sizes
    for second in range(20, 120):  # endless refusals leave one request
        window.throttle(float(second), second + 0.5)
    assert window.size == 1


# ── rates ────────────────────────────────────────────────────────────────────


def gaps(server: Loopback) -> list[float]:
    return [
        later - earlier for earlier, later in zip(server.arrived, server.arrived[1:], strict=False)
    ]


def test_requests_per_minute_are_kept_by_all_threads_and_models_of_an_address(load: Load) -> None:
    with Loopback(echo) as server:
        models = [
            load(server, concurrency=8, model=m, requests_per_minute=rate)
            for m, rate in (("a", 1200), ("b", None))
        ]
        started = time.monotonic()
        together(*models, requests=5)
        assert time.monotonic() - started >= 9 * 0.05


def test_tokens_per_minute_count_what_answers_really_took(load: Load) -> None:
    with Loopback(answer()) as server:  # 10 tokens each; estimated at 257 at first
        llm = load(server, concurrency=4, tokens_per_minute=6000)
        started = time.monotonic()
        llm.generate(many(8))
        assert 7 * 0.1 * 0.9 <= time.monotonic() - started < 2.5


def test_a_rate_spreads_evenly_and_takes_corrections() -> None:
    rate = Rate(60)
    assert rate.wait(100.0) == 0.0
    rate.take(3, 100.0)
    assert rate.wait(100.0) == 3.0
    rate.take(-1)
    assert rate.wait(101.0) == 1.0
    assert Rate(None).wait(0.0) == 0.0


def test_nobody_asks_while_the_server_says_that_nothing_is_left(load: Load) -> None:
    used_up = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "400ms"}
    with Loopback(send_json(completion(), 200, **used_up), answer()) as server:
        llm = load(server, concurrency=1)
        llm.generate(many(3))
        first, second = gaps(server)
        assert first >= 0.38
        assert second < 1.0


def test_a_wish_for_a_pause_is_kept_by_the_other_threads_too(load: Load) -> None:
    with Loopback(fail(429, headers={"retry_after": "0.4"}), echo) as server:
        llm = load(server, concurrency=2)
        threads = [threading.Thread(target=llm.generate, args=([ask()],)) for _ in range(2)]
        threads[0].start()
        assert server.until(lambda: server.answered == 1)
        time.sleep(0.05)
        threads[1].start()
        for thread in threads:
            thread.join(5)
        assert min(gaps(server)[:1]) >= 0.35


@pytest.mark.parametrize(
    ("names", "left", "reset", "expected"),
    [
        ("x-ratelimit-{}-requests", "3", "1m30s", (3, 90)),
        ("x-ratelimit-{}", "0", "7", (0, 7)),
        ("ratelimit-{}", "0", "1h", (0, 3600)),
        ("ratelimit-{}", "0", lambda: f"{time.time() + 5:.3f}", (0, 5)),
        ("ratelimit-{}", "0", lambda: f"{(time.time() + 5) * 1000:.0f}", (0, 5)),
        ("x-ratelimit-{}-tokens", "9", "86ms", (9, 0.086)),
        ("x-ratelimit-{}-tokens", "some", "1s", None),
        ("x-ratelimit-{}-tokens", "0", "soon", None),
        ("x-ratelimit-{}-tokens", "0", "nan", None),
    ],
)
def test_what_is_left_is_read_from_any_of_the_usual_headers(
    names: str, left: str, reset: Any, expected: tuple[float, float] | None
) -> None:
    reset = reset() if callable(reset) else reset
    headers = {names.format("remaining"): left, names.format("reset"): reset}
    rest = remainder(headers, "tokens" if names.endswith("tokens") else "requests")
    assert rest == (expected and pytest.approx(expected, abs=0.5 if expected[1] == 5 else 1e-6))
    assert remainder({names.format("remaining"): left}, "requests") is None
