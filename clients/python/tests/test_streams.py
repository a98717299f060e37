"""Streams of Redis, with a Redis of each test's own."""

from __future__ import annotations

import asyncio
import json
import queue
import threading
from typing import Any

import pytest

from overtake import Closed, ConnectionLost, Refused, Reject, TimedOut, current_priority
from overtake.streams import (
    AsyncDeadLetters,
    AsyncSubscriber,
    DeadLetters,
    Entry,
    Lane,
    Lanes,
    Retry,
    Subscriber,
)

from .redis_server import RedisServer
from .rows import row

#: Longer than any test may take: what waits for so long must be woken.
LONG_S = 3600.0
#: Short enough for a test.
IDLE_S = 0.09

READ = "read streams of Redis or Valkey, their urgent lane first"
HANDLE = "handle entries of streams: in the entry's scope, again when they fail, then dead letters"
DEAD = "dead letters of streams: list, inspect, replay, remove, purge"


def options(**more: Any) -> dict[str, Any]:
    own = {
        "lanes": Lanes(),
        "block_s": LONG_S,
        "claim_idle_s": LONG_S,
        "retry": Retry(initial_s=0.005),
        "consumer": "c",
    }
    return own | more


def subscribe(server: RedisServer, **more: Any) -> Subscriber:
    return Subscriber(server.url, "customer", more.pop("group", "mails"), **options(**more))


def asubscribe(server: RedisServer, **more: Any) -> AsyncSubscriber:
    return AsyncSubscriber(server.url, "customer", "mails", **options(**more))


def take(subscriber: Subscriber) -> Entry:
    entry = subscriber.next()
    assert entry is not None
    return entry


def drain(subscriber: Subscriber, count: int) -> list[Any]:
    found = []
    for _ in range(count):
        entry = take(subscriber)
        assert subscriber.ack(entry)
        found.append(entry.data)
    return found


async def atake(subscriber: AsyncSubscriber) -> Entry:
    entry = await subscriber.next()
    assert entry is not None
    return entry


async def adrain(subscriber: AsyncSubscriber, count: int) -> list[Any]:
    found = []
    for _ in range(count):
        entry = await atake(subscriber)
        assert await subscriber.ack(entry)
        found.append(entry.data)
    return found


def dead_letters(server: RedisServer) -> DeadLetters:
    return DeadLetters(server.url, "customer", lanes=Lanes())


@row(READ)
def test_the_primary_lane_is_drained_first_and_each_lane_is_in_order_plain(redis_server: RedisServer) -> None:
    redis_server.add("customer:backfill", "b1", "b2", "b3")
    redis_server.add("customer", "p1", "p2")
    with subscribe(redis_server) as subscriber:
        assert drain(subscriber, 5) == ["p1", "p2", "b1", "b2", "b3"]


@row(READ)
async def test_the_primary_lane_is_drained_first_and_each_lane_is_in_order_asyncio(redis_server: RedisServer) -> None:
    redis_server.add("customer:backfill", "b1", "b2", "b3")
    redis_server.add("customer", "p1", "p2")
    async with asubscribe(redis_server) as subscriber:
        assert await adrain(subscriber, 5) == ["p1", "p2", "b1", "b2", "b3"]


def test_an_arrival_in_either_lane_ends_a_wait(redis_server: RedisServer) -> None:
    with subscribe(redis_server) as subscriber:
        for stream in ("customer", "customer:backfill"):
            found: list[Any] = []
            waits = threading.Thread(target=lambda into=found: into.extend(drain(subscriber, 1)))
            waits.start()
            redis_server.wait_for_blocked()
            redis_server.add(stream, stream)
            waits.join()
            assert found == [stream]


async def test_who_waits_may_be_given_up_and_nothing_is_lost(redis_server: RedisServer) -> None:
    async with asubscribe(redis_server) as subscriber:
        for _ in range(2):
            waits = asyncio.create_task(subscriber.next())
            await asyncio.to_thread(redis_server.wait_for_blocked)
            waits.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waits
        redis_server.add("customer", "1")
        assert await adrain(subscriber, 1) == ["1"]


@pytest.mark.parametrize("batch_backfill", [1, 3])
def test_an_urgent_arrival_is_next_after_what_is_held(redis_server: RedisServer, batch_backfill: int) -> None:
    redis_server.add("customer:backfill", "b1", "b2", "b3")
    with subscribe(redis_server, batch_backfill=batch_backfill) as subscriber:
        held = take(subscriber)
        assert (held.data, held.lane) == ("b1", Lane.BACKFILL)
        redis_server.add("customer", "urgent")
        assert drain(subscriber, 3) == ["urgent", "b2", "b3"]
        assert subscriber.ack(held)


def test_where_lanes_are_not_enabled_there_is_one_stream(redis_server: RedisServer) -> None:
    redis_server.add("customer:backfill", "b")
    redis_server.add("customer", "1")
    with subscribe(redis_server, lanes=None) as subscriber:
        assert drain(subscriber, 1) == ["1"]
        with pytest.raises(TimedOut):
            subscriber.next(timeout=0.01)


def test_each_group_has_its_own_copy(redis_server: RedisServer) -> None:
    redis_server.add("customer", "1", "2")
    with subscribe(redis_server) as one, subscribe(redis_server, group="bills") as other:
        assert drain(one, 2) == ["1", "2"]
        assert drain(other, 2) == ["1", "2"]


def test_what_failed_is_tried_again_and_then_is_a_dead_letter_of_its_lane(redis_server: RedisServer) -> None:
    for lane, stream in ((Lane.PRIMARY, "customer"), (Lane.BACKFILL, "customer:backfill")):
        redis_server.add(stream, "bad")
        with subscribe(redis_server) as subscriber:
            for attempt in (1, 2, 3):
                entry = take(subscriber)
                assert (entry.attempt, entry.stream) == (attempt, stream)
                assert subscriber.fail(entry, "no room") == ("dead" if attempt == 3 else "again")
        assert redis_server.pending(stream) == 0
        with dead_letters(redis_server) as letters:
            letter = next(letter for letter in letters.list() if letter.lane is lane)
        assert (letter.stream, letter.attempts, letter.reason, letter.data) == (stream, 3, "no room", "bad")
        assert (letter.group, letter.consumer) == ("mails", "c")


def test_what_failed_holds_up_nobody_and_its_attempts_survive(redis_server: RedisServer) -> None:
    redis_server.add("customer", "bad", "1", "2")
    with subscribe(redis_server, retry=Retry(initial_s=LONG_S, max_s=LONG_S)) as subscriber:
        assert subscriber.fail(take(subscriber), "no") == "again"
        assert drain(subscriber, 2) == ["1", "2"]
    with subscribe(redis_server) as subscriber:
        again = take(subscriber)
        assert (again.data, again.attempt) == ("bad", 2)


def test_what_nobody_can_read_is_a_dead_letter_at_once_and_comes_back_as_it_was(redis_server: RedisServer) -> None:
    for text in ("garbage", "[1]", '{"event": 1}', "NaN"):
        redis_server.ask("XADD", "customer", "*", "data", text)
    redis_server.ask("XADD", "customer", "*", "body", b"\xff")
    redis_server.add("customer", "good")
    with subscribe(redis_server) as subscriber, dead_letters(redis_server) as letters:
        assert drain(subscriber, 1) == ["good"]
        found = letters.list()
        assert len(found) == 5
        assert all(str(letter.reason).startswith("it cannot be read: ") for letter in found)
        assert letters.replay(found[0].id)
        assert redis_server.ask("XREVRANGE", "customer", "+", "-", "COUNT", 1)[0][1] == [b"body", b"\xff"]


@pytest.mark.parametrize(
    ("breaks", "mends"),
    [
        (("SET", "customer:dlq", "x"), ("DEL", "customer:dlq")),
        (("CONFIG", "SET", "maxmemory", 1), ("CONFIG", "SET", "maxmemory", 0)),
    ],
)
def test_where_dead_letters_cannot_be_written_the_entry_stays(
    redis_server: RedisServer, breaks: tuple[Any, ...], mends: tuple[Any, ...]
) -> None:
    redis_server.add("customer", "bad")
    with subscribe(redis_server, block_s=0.01) as subscriber:
        entry = take(subscriber)
        redis_server.ask(*breaks)
        assert subscriber.reject(entry, "no") == "kept"
        assert redis_server.pending("customer") == 1
        redis_server.ask(*mends)
        waits = threading.Thread(target=subscriber.next)
        waits.start()
        redis_server.ask("XREAD", "BLOCK", 0, "STREAMS", "customer:dlq", "0")
        subscriber.quit()
        waits.join()
    assert redis_server.pending("customer") == 0


def test_what_a_consumer_left_that_is_gone_is_claimed(redis_server: RedisServer) -> None:
    redis_server.add("customer", "p1")
    redis_server.add("customer:backfill", "b1")
    for stream in ("customer", "customer:backfill"):
        redis_server.ask("XGROUP", "CREATE", stream, "mails", 0)
        redis_server.ask("XREADGROUP", "GROUP", "mails", "gone", "STREAMS", stream, ">")
    with subscribe(redis_server, claim_idle_s=0.01) as subscriber:
        for expected in ("p1", "b1"):
            entry = take(subscriber)
            assert (entry.data, entry.attempt) == (expected, 2)
            assert subscriber.ack(entry)


@pytest.mark.parametrize(("stream", "batch"), [("customer", 10), ("customer:backfill", 1)])
def test_what_a_consumer_left_is_taken_over_after_one_batch_of_new_entries_at_most(
    redis_server: RedisServer, stream: str, batch: int
) -> None:
    """Under a steady backlog of new entries; counted in new entries that are handled after it may be taken over."""
    # More than a batch, and behind many that somebody is at work on.
    left = [f"left {number}" for number in range(12)]
    idle = ("XPENDING", stream, "mails", "IDLE", int(IDLE_S * 1000), "-", "+", len(left), "gone")
    handled: list[Any] = []
    with (
        subscribe(redis_server, consumer="lives", claim_idle_s=IDLE_S) as lives,
        subscribe(redis_server, claim_idle_s=IDLE_S) as subscriber,
    ):
        redis_server.add(stream, *["at work"] * 300)
        for _ in range(300):
            take(lives)
        redis_server.add(stream, *left, *["new"] * 20)
        redis_server.ask("XREADGROUP", "GROUP", "mails", "gone", "COUNT", len(left), "STREAMS", stream, ">")
        # It looks now and then for what others left, and may find it before we do.
        while len(redis_server.ask(*idle)) < len(left) and left[0] not in handled:
            redis_server.add(stream, "new")
            handled += drain(subscriber, 1)
        handled = [data for data in handled if data == left[0]]
        while left[-1] not in handled:
            redis_server.add(stream, "new")
            handled += drain(subscriber, 1)
            assert handled.count("new") < batch, handled
    assert [data for data in handled if data in left] == left, "the oldest first"


def test_what_is_worked_on_for_long_is_taken_by_nobody(redis_server: RedisServer) -> None:
    redis_server.add("customer", "long")
    short = {"claim_idle_s": IDLE_S}
    with (
        subscribe(redis_server, consumer="one", **short) as one,
        subscribe(redis_server, consumer="other", **short) as other,
    ):
        held = take(one)
        found: list[Any] = []
        waits = threading.Thread(target=lambda: found.extend(drain(other, 1)))
        waits.start()
        resets = last = 0
        while resets < 8:
            ((_, _, idle, count),) = redis_server.ask("XPENDING", "customer", "mails", "-", "+", 10)
            assert count == 1, "nobody had it since"
            resets += idle < last
            last = idle
        redis_server.add("customer", "new")
        waits.join()
        assert found == ["new"]
        assert one.ack(held)


def test_who_stops_gives_back_what_it_holds_and_leaves(redis_server: RedisServer) -> None:
    redis_server.add("customer", "1", "2", "3")
    with subscribe(redis_server, consumer="one") as one:
        assert drain(one, 1) == ["1"]
    with subscribe(redis_server, consumer="other") as other:
        for expected in ("2", "3"):
            entry = take(other)
            assert (entry.data, entry.attempt) == (expected, 1)
            assert other.ack(entry)
    # What the first held was pending under its name until the other took it.
    names = [consumer[1] for consumer in redis_server.ask("XINFO", "CONSUMERS", "customer", "mails")]
    assert names == [b"one"]


async def test_a_subscriber_is_an_iterator_that_ends_when_it_is_stopped(redis_server: RedisServer) -> None:
    redis_server.add("customer", "1", "2", "3")
    found = []
    async with asubscribe(redis_server) as subscriber:
        async for entry in subscriber:
            found.append(entry.data)
            await subscriber.ack(entry)
            if len(found) == 2:
                await subscriber.quit()
    with subscribe(redis_server) as plain:
        for entry in plain:
            found.append(entry.data)
            assert entry.attempt == 1, "it was given back, and not tried"
            plain.ack(entry)
            plain.quit()
    assert found == ["1", "2", "3"]


async def test_who_stops_ends_a_wait_asyncio(redis_server: RedisServer) -> None:
    subscriber = asubscribe(redis_server)
    with pytest.raises(Closed):
        await subscriber.next()
    async with subscriber:
        waits = asyncio.create_task(subscriber.next())
        await asyncio.to_thread(redis_server.wait_for_blocked)
        await subscriber.stop()
        assert await waits is None
    assert redis_server.ask("XINFO", "CONSUMERS", "customer", "mails") == []


def test_a_connection_that_is_lost_comes_again_plain(redis_server: RedisServer) -> None:
    redis_server.add("customer", "1", "2")
    with subscribe(redis_server) as subscriber:
        held = take(subscriber)
        redis_server.kill()
        settled: list[bool] = []
        settles = threading.Thread(target=lambda: settled.append(subscriber.ack(held)))
        settles.start()
        redis_server.start()
        settles.join()
        assert settled == [True]
        assert drain(subscriber, 1) == ["2"]
        redis_server.kill()
        redis_server.start()
        redis_server.add("customer", "3")
        assert drain(subscriber, 1) == ["3"]


async def test_a_connection_that_is_lost_comes_again_asyncio(redis_server: RedisServer) -> None:
    redis_server.add("customer", "1")
    async with asubscribe(redis_server) as subscriber:
        assert await adrain(subscriber, 1) == ["1"]
        waits = asyncio.create_task(adrain(subscriber, 1))
        await asyncio.to_thread(redis_server.wait_for_blocked)
        redis_server.kill()
        redis_server.start()
        redis_server.add("customer", "2")
        assert await waits == ["2"]


def test_what_cannot_be_is_told(redis_server: RedisServer) -> None:
    redis_server.ask("SET", "customer", "x")
    with pytest.raises(Refused, match="WRONGTYPE"):
        subscribe(redis_server)
    redis_server.kill()
    with pytest.raises(ConnectionLost):
        subscribe(redis_server)
    for wrong in ({"batch": 0}, {"block_s": 0}, {"claim_idle_s": 0}, {"start": "1"}, {"group": " "}):
        with pytest.raises(ValueError, match="`"):
            subscribe(redis_server, **wrong)
    for suffix in ("", "dlq", "a:b"):
        with pytest.raises(ValueError, match="suffix"):
            Lanes(suffix=suffix)
    for retry in ({"attempts": 0}, {"multiplier": 0.5}, {"initial_s": -1}):
        with pytest.raises(ValueError, match="`"):
            Retry(**retry)


def _handled(told: list[str], entry: Entry) -> None:
    told.append(f"{entry.data}:{int(current_priority())}:{entry.attempt}")
    if entry.data == "fails":
        raise KeyError("key")
    if entry.data == "dies":
        raise Reject("it never can")


EXPECTED = ["works:50:1", "dies:-60:1", "fails:-50:1", "fails:-50:2", "silent:-50:1"]


def _add_all(redis_server: RedisServer) -> None:
    lanes = Lanes()
    for data, priority in (("works", 50), ("dies", -60), ("fails", -50)):
        redis_server.add(lanes.stream_of("customer", priority), data, metadata={"domain": {"priority": priority}})


@row(HANDLE)
def test_entries_are_handled_in_their_scope_and_again_when_they_fail_plain(redis_server: RedisServer) -> None:
    _add_all(redis_server)
    told: list[str] = []
    done = threading.Event()

    def handler(entry: Entry) -> None:
        _handled(told, entry)
        if entry.data == "silent":
            done.set()

    with subscribe(redis_server, retry=Retry(attempts=2, initial_s=0.005)).handle(handler):
        redis_server.ask("XREAD", "BLOCK", 0, "STREAMS", "customer:backfill:dlq", "0")
        while redis_server.ask("XLEN", "customer:backfill:dlq") < 2:
            pass
        redis_server.add("customer:backfill", "silent")
        done.wait()
    assert told == EXPECTED
    with dead_letters(redis_server) as letters:
        assert [letter.reason for letter in letters.list()] == ["KeyError: 'key'", "it never can"]


@row(HANDLE)
async def test_entries_are_handled_in_their_scope_and_again_when_they_fail_asyncio(redis_server: RedisServer) -> None:
    _add_all(redis_server)
    told: list[str] = []
    done = asyncio.Event()

    async def handler(entry: Entry) -> None:
        _handled(told, entry)
        if entry.data == "silent":
            done.set()

    async with (
        asubscribe(redis_server, retry=Retry(attempts=2, initial_s=0.005)) as subscriber,
        subscriber.handle(handler, concurrency=1),
    ):
        await asyncio.to_thread(_wait_for_dead, redis_server, 2)
        redis_server.add("customer:backfill", "silent")
        await done.wait()
    assert told == EXPECTED
    async with AsyncDeadLetters(redis_server.url, "customer", lanes=Lanes()) as letters:
        assert [letter.reason for letter in await letters.list()] == ["KeyError: 'key'", "it never can"]


def _add_to_lane(server: RedisServer, lane: str, partitions: bool, *data: str) -> None:
    """Each into the category, or into a partition of its own."""
    for number, each in enumerate(data):
        if partitions:
            server.ask("SADD", "customer:__partitions__", f"{number}")
        server.add(f"customer:{number}{lane}" if partitions else f"customer{lane}", each)


@pytest.mark.parametrize("partitions", [False, True])
def test_an_urgent_entry_finds_a_kept_slot_while_bulk_handlers_fill_all_others(
    redis_server: RedisServer, partitions: bool
) -> None:
    _add_to_lane(redis_server, ":backfill", partitions, "bulk", "bulk", "bulk", "bulk")
    told: queue.Queue[str] = queue.Queue()
    gate = threading.Semaphore(0)

    def handler(entry: Entry) -> None:
        told.put(entry.data)
        if entry.data == "bulk":
            gate.acquire()
        if entry.attempt == 1:
            raise KeyError("another time")

    subscriber = subscribe(redis_server, partitions=partitions)
    for slots, primary, said in ((2, 2, "2 of 2 slots"), (2, -1, "at least 0")):
        with pytest.raises(ValueError, match=said):
            subscriber.handle(handler, concurrency=slots, primary_slots=primary)
    with subscriber.handle(handler, concurrency=3, primary_slots=1):
        assert [told.get(), told.get()] == ["bulk", "bulk"]
        for urgent in ("first", "second"):
            _add_to_lane(redis_server, "", partitions, urgent)
            assert [told.get(), told.get()] == [urgent, urgent]
        # Each of the four is handled twice; when one ends the next one begins, although the read that waits left out its lane.
        gate.release(8)
        assert [told.get() for _ in range(6)] == ["bulk"] * 6


@pytest.mark.parametrize("partitions", [False, True])
async def test_an_urgent_entry_finds_a_kept_slot_while_bulk_handlers_fill_all_others_asyncio(
    redis_server: RedisServer, partitions: bool
) -> None:
    _add_to_lane(redis_server, ":backfill", partitions, "bulk", "bulk", "bulk", "bulk")
    told: asyncio.Queue[str] = asyncio.Queue()
    gate = asyncio.Semaphore(0)

    async def handler(entry: Entry) -> None:
        told.put_nowait(entry.data)
        if entry.data == "bulk":
            await gate.acquire()

    async with (
        asubscribe(redis_server, partitions=partitions) as subscriber,
        subscriber.handle(handler, concurrency=3, primary_slots=1),
    ):
        assert [await told.get(), await told.get()] == ["bulk", "bulk"]
        for urgent in ("first", "second"):
            _add_to_lane(redis_server, "", partitions, urgent)
            assert await told.get() == urgent
        for _ in range(2):
            gate.release()
            assert await told.get() == "bulk"
        gate.release()
        gate.release()


def test_slots_cannot_be_kept_where_there_is_one_lane(redis_server: RedisServer) -> None:
    with subscribe(redis_server, lanes=None) as subscriber, pytest.raises(ValueError, match="needs two lanes"):
        subscriber.handle(print, concurrency=2, primary_slots=1)


def _wait_for_dead(redis_server: RedisServer, count: int) -> None:
    while redis_server.ask("XLEN", "customer:backfill:dlq") < count:
        pass


def _three(redis_server: RedisServer) -> None:
    """Three dead letters: two of the primary lane, and between them one of the other."""
    with subscribe(redis_server) as subscriber:
        for stream, data in (("customer", "p1"), ("customer:backfill", "b1"), ("customer", "p2")):
            redis_server.add(stream, data)
            subscriber.reject(take(subscriber), "no")
            # Else both lanes may have a letter of the same id.
            redis_server.wait_for_next_ms()


@row(DEAD)
def test_dead_letters_are_listed_and_replayed_to_their_lane_plain(redis_server: RedisServer) -> None:
    _three(redis_server)
    with dead_letters(redis_server) as letters, subscribe(redis_server) as subscriber:
        found = letters.list()
        assert [letter.data for letter in found] == ["p2", "b1", "p1"]
        assert letters.list(2) == found[:2]
        assert letters.inspect(found[1].id) == found[1]
        assert letters.replay(found[1].id)
        assert not letters.replay(found[1].id)
        again = take(subscriber)
        assert (again.data, again.stream, again.attempt) == ("b1", "customer:backfill", 1)
        assert letters.replay_all() == 2
        assert drain(subscriber, 2) == ["p1", "p2"]
        assert letters.list() == []
    _three(redis_server)
    with dead_letters(redis_server) as letters:
        assert letters.remove(letters.list()[0].id)
        assert letters.purge(Lane.BACKFILL) == 1
        assert letters.purge() == 1
        for wrong in ("-", "(1-0", "99999999999999999999"):
            with pytest.raises(ValueError, match="no id"):
                letters.inspect(wrong)
        redis_server.ask("SET", "customer", "x")
        redis_server.ask("XADD", "customer:dlq", "*", "data", '{"data": 1}')
        with pytest.raises(Refused, match="WRONGTYPE"):
            letters.replay_all()


@row(DEAD)
async def test_dead_letters_are_listed_and_replayed_to_their_lane_asyncio(redis_server: RedisServer) -> None:
    _three(redis_server)
    async with AsyncDeadLetters(redis_server.url, "customer", lanes=Lanes()) as letters:
        found = await letters.list()
        assert [letter.data for letter in found] == ["p2", "b1", "p1"]
        assert await letters.inspect(found[1].id) == found[1]
        assert await letters.replay(found[1].id)
        assert redis_server.ask("XLEN", "customer:backfill") == 2
        assert await letters.remove(found[0].id)
        assert await letters.replay_all() == 1
        assert await letters.purge() == 0


def test_a_letter_has_the_numbers_of_its_entry_as_they_were_written(redis_server: RedisServer) -> None:
    text = '{"data": {"n": 1.10, "big": 123456789012345678901234567890},\n "metadata": {}}\n'
    redis_server.ask("XADD", "customer", "*", "data", text, "trace", b"\xff")
    with subscribe(redis_server) as subscriber, dead_letters(redis_server) as letters:
        subscriber.reject(take(subscriber), "no")
        told = json.loads(redis_server.ask("XRANGE", "customer:dlq", "-", "+")[0][1][1])
        assert told["_dlq_metadata"]["failure_reason"] == "no"
        assert letters.replay_all() == 1
        words = redis_server.ask("XREVRANGE", "customer", "+", "-", "COUNT", 1)[0][1]
        assert b"1.10" in words[1]
        assert json.loads(words[1]) == json.loads(text)
        assert words[2:] == [b"trace", b"\xff"]
