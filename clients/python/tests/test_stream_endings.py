"""Every way in which the work on an entry of a stream can end, and lanes that the server declines."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from overtake import LoginRefused, Refused, TimedOut
from overtake.streams import DeadLetters, Entry, Lanes, Retry, Subscriber

from .redis_server import RedisServer
from .rows import row
from .test_endings import FAILURES, FATAL, name_of, said
from .test_streams import HANDLE, IDLE_S, adrain, asubscribe, drain, subscribe, take


def taken_over(server: RedisServer) -> tuple[Any, int]:
    """The entry that another consumer takes over, and its attempt."""
    with subscribe(server, consumer="d", claim_idle_s=IDLE_S) as other:
        entry = take(other)
        assert other.ack(entry)
    return entry.data, entry.attempt


@row(HANDLE)
@pytest.mark.parametrize("error", FATAL, ids=name_of)
def test_who_ends_its_thread_gives_its_entry_back_plain(
    redis_server: RedisServer, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    redis_server.add("customer", "1")

    def handler(_: Entry) -> None:
        raise error

    with pytest.raises(type(error)), subscribe(redis_server).handle(handler, concurrency=2) as handling:
        for thread in handling._threads:
            thread.join()
        assert len(said(caplog)) == 1
        # The subscriber has ended, too: others need not wait until it has been idle for long.
        assert taken_over(redis_server) == ("1", 2)
    assert redis_server.pending("customer") == 0


@row(HANDLE)
@pytest.mark.parametrize("error", FATAL, ids=name_of)
async def test_who_would_end_the_loop_gives_its_entry_back_asyncio(
    redis_server: RedisServer, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    redis_server.add("customer", "1")

    async def handler(_: Entry) -> None:
        raise error

    async with asubscribe(redis_server) as subscriber:
        with pytest.raises(type(error)):
            async with subscriber.handle(handler, concurrency=2) as handling:
                await asyncio.wait([handling._task])
                assert len(said(caplog)) == 1
                assert await asyncio.to_thread(taken_over, redis_server) == ("1", 2)
    assert redis_server.pending("customer") == 0


@row(HANDLE)
@pytest.mark.parametrize("error", FAILURES, ids=name_of)
def test_a_failure_ends_the_work_on_one_entry_only_plain(
    redis_server: RedisServer, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    redis_server.add("customer", "fails", "last")
    seen: list[tuple[Any, int]] = []
    done = threading.Event()

    def handler(entry: Entry) -> None:
        seen.append((entry.data, entry.attempt))
        if entry.data == "fails" and entry.attempt == 1:
            raise error
        if len(seen) == 3:
            done.set()

    with subscribe(redis_server).handle(handler):
        assert done.wait(60)
    assert sorted(seen) == [("fails", 1), ("fails", 2), ("last", 1)]
    assert redis_server.pending("customer") == 0
    [line] = said(caplog)
    assert name_of(error) in line


@row(HANDLE)
async def test_a_task_that_is_cancelled_from_outside_has_its_entry_tried_again_asyncio(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    redis_server.add("customer", "1")
    works: asyncio.Queue[tuple[asyncio.Task[None] | None, int]] = asyncio.Queue()

    async def handler(entry: Entry) -> None:
        works.put_nowait((asyncio.current_task(), entry.attempt))
        if entry.attempt == 1:
            await asyncio.Event().wait()

    async with asubscribe(redis_server) as subscriber, subscriber.handle(handler):
        work, attempt = await works.get()
        assert (work is not None, attempt) == (True, 1)
        assert work is not None
        work.cancel()
        assert (await works.get())[1] == 2
    assert redis_server.pending("customer") == 0
    assert len(said(caplog)) == 1


def break_lane(server: RedisServer, stream: str) -> None:
    """Puts a string in the place of a stream."""
    server.ask("SET", stream, "no stream")


def until_broken(subscriber: Subscriber) -> None:
    """Looks for entries until it is known that a lane is broken."""
    while subscriber.broken is None:
        with pytest.raises(TimedOut):
            subscriber.next(timeout=0.01)


@row(HANDLE)
@pytest.mark.parametrize(
    ("broken", "sound"),
    [("customer", "customer:backfill"), ("customer:backfill", "customer")],
    ids=["primary", "backfill"],
)
def test_a_lane_that_is_broken_does_not_end_the_other_plain(
    redis_server: RedisServer, broken: str, sound: str, caplog: pytest.LogCaptureFixture
) -> None:
    with subscribe(redis_server, block_s=0.05) as subscriber:
        redis_server.add(sound, "1")
        assert drain(subscriber, 1) == ["1"]
        break_lane(redis_server, broken)
        until_broken(subscriber)
        for body in ("2", "3"):
            redis_server.add(sound, body)
            assert drain(subscriber, 1) == [body]
        line = said(caplog)[0]
        assert line.startswith(f"{broken} ")
        assert "WRONGTYPE" in line


@row(HANDLE)
@pytest.mark.parametrize(
    ("broken", "sound"),
    [("customer", "customer:backfill"), ("customer:backfill", "customer")],
    ids=["primary", "backfill"],
)
def test_a_lane_that_cannot_be_made_again_without_memory_does_not_end_the_other_plain(
    redis_server: RedisServer, broken: str, sound: str
) -> None:
    redis_server.add(sound, "1")
    with subscribe(redis_server, block_s=0.05) as subscriber:
        assert drain(subscriber, 1) == ["1"]
        redis_server.ask("CONFIG", "SET", "maxmemory", 1)
        redis_server.ask("DEL", broken)
        until_broken(subscriber)
        assert str(subscriber.broken).startswith(f"{broken}: OOM")
        # Nothing can be added now, but what is there can be new once more.
        redis_server.ask("XGROUP", "SETID", sound, "mails", 0)
        assert drain(subscriber, 1) == ["1"]
        redis_server.ask("CONFIG", "SET", "maxmemory", 0)
        redis_server.add(broken, "2")
        assert drain(subscriber, 1) == ["2"]
        assert subscriber.broken is None


@row(HANDLE)
def test_a_backfill_lane_that_cannot_be_read_does_not_keep_the_primary_from_beginning_plain(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    break_lane(redis_server, "customer:backfill")
    redis_server.add("customer", "1")
    with subscribe(redis_server) as subscriber:
        assert str(subscriber.broken).startswith("customer:backfill: WRONGTYPE")
        assert drain(subscriber, 1) == ["1"]
    assert said(caplog)[0].startswith("customer:backfill ")


@row(HANDLE)
def test_a_primary_lane_that_stays_broken_is_told_at_each_retry_while_backfill_goes_on_plain(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("overtake.streams.reading.BROKEN_S", 0.01)
    with subscribe(redis_server, block_s=0.05) as subscriber:
        break_lane(redis_server, "customer")
        while len(said(caplog)) < 3:
            redis_server.add("customer:backfill", "1")
            assert drain(subscriber, 1) == ["1"]
    assert all(line.startswith("customer ") and "WRONGTYPE" in line for line in said(caplog))


@row(HANDLE)
async def test_a_lane_that_is_broken_does_not_end_the_other_asyncio(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    async with asubscribe(redis_server, block_s=0.05) as subscriber:
        redis_server.add("customer:backfill", "1")
        assert await adrain(subscriber, 1) == ["1"]
        break_lane(redis_server, "customer")
        redis_server.add("customer:backfill", "2")
        assert await adrain(subscriber, 1) == ["2"]
    assert said(caplog)[0].startswith("customer ")


@row(HANDLE)
def test_leaving_says_which_lane_is_broken_plain(redis_server: RedisServer) -> None:
    handled = threading.Semaphore(0)
    with pytest.raises(Refused, match="customer:backfill: WRONGTYPE"):  # noqa: SIM117
        with subscribe(redis_server, block_s=0.05).handle(lambda _: handled.release()) as handling:
            break_lane(redis_server, "customer:backfill")
            while handling._subscriber.broken is None:
                redis_server.add("customer", "1")
                assert handled.acquire(timeout=60)


@row(HANDLE)
def test_a_handling_ends_when_no_lane_can_be_read_plain(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(Refused, match="WRONGTYPE"):  # noqa: SIM117
        with subscribe(redis_server, lanes=Lanes(enabled=False), block_s=0.05).handle(print, concurrency=3) as handling:
            break_lane(redis_server, "customer")
            for thread in handling._threads:
                thread.join()
            assert handling._subscriber._is_over
    assert len(said(caplog)) == 1


@row(HANDLE)
async def test_a_handling_ends_when_no_lane_can_be_read_asyncio(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(_: Entry) -> None:
        return

    async with asubscribe(redis_server, lanes=Lanes(enabled=False), block_s=0.05) as subscriber:
        with pytest.raises(Refused, match="WRONGTYPE"):
            async with subscriber.handle(handler) as handling:
                break_lane(redis_server, "customer")
                await asyncio.wait([handling._task])
    assert len(said(caplog)) == 1


@row(HANDLE)
def test_a_lane_that_is_mended_is_read_again_plain(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("overtake.streams.reading.BROKEN_S", 0.01)
    with subscribe(redis_server, block_s=0.05) as subscriber:
        break_lane(redis_server, "customer:backfill")
        until_broken(subscriber)
        redis_server.ask("DEL", "customer:backfill")
        redis_server.add("customer:backfill", "b")
        assert drain(subscriber, 1) == ["b"]
        assert subscriber.broken is None


@row(HANDLE)
def test_an_entry_that_nobody_can_read_is_a_dead_letter_and_others_are_handled_plain(redis_server: RedisServer) -> None:
    redis_server.ask("XADD", "customer", "*", "data", b"\xff\xfe{")
    redis_server.add("customer", "1")
    with subscribe(redis_server) as subscriber:
        assert drain(subscriber, 1) == ["1"]
    with DeadLetters(redis_server.url, "customer", lanes=Lanes()) as dead:
        assert len(dead.list()) == 1


@row(HANDLE)
def test_an_ack_that_the_server_declines_is_said_and_the_entry_comes_again_plain(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    redis_server.add("customer", "1")
    attempts: list[int] = []
    twice = threading.Event()

    def handler(entry: Entry) -> None:
        attempts.append(entry.attempt)
        if len(attempts) == 1:
            redis_server.ask("ACL", "SETUSER", "default", "-xack")
        else:
            redis_server.ask("ACL", "SETUSER", "default", "+xack")
            twice.set()

    with subscribe(redis_server).handle(handler):
        assert twice.wait(60)
    assert attempts == [1, 2]
    assert redis_server.pending("customer") == 0
    [line] = said(caplog)
    assert "is not settled" in line


@row(HANDLE)
def test_a_password_that_is_wrong_for_a_while_ends_nothing_plain(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    url = redis_server.url.replace("://", "://ann:old@")
    redis_server.ask("ACL", "SETUSER", "ann", "on", ">old", "~*", "&*", "+@all")
    with Subscriber(
        url, "customer", "mails", lanes=Lanes(), block_s=0.05, retry=Retry(initial_s=0.005), login_retry=0.05
    ) as subscriber:
        redis_server.ask("ACL", "SETUSER", "ann", "resetpass", ">new")
        redis_server.ask("CLIENT", "KILL", "USER", "ann")
        found: list[Any] = []
        waits = threading.Thread(target=lambda: found.extend(drain(subscriber, 1)))
        waits.start()
        while not said(caplog):
            redis_server.ask("PING")
        redis_server.ask("ACL", "SETUSER", "ann", "resetpass", ">old")
        redis_server.add("customer", "1")
        waits.join()
    assert found == ["1"]
    assert len(said(caplog)) == 1
    with pytest.raises(LoginRefused):
        Subscriber(url.replace("old", "other"), "customer", "mails")
