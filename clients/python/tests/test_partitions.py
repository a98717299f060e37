"""Categories that are parted by keys, with a Redis of each test's own."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from overtake.streams import AsyncSubscriber, DeadLetters, Entry, Lanes, Subscriber

from .redis_server import RedisServer
from .test_streams import IDLE_S, adrain, drain, options, take


def subscribe(server: RedisServer, **more: Any) -> Subscriber:
    return Subscriber(server.url, "order", "mails", partitions=True, **options(**more))


def add(server: RedisServer, key: str, lane: str, *all_data: Any) -> None:
    """Entries in the stream of a key, which is recorded, as writers do."""
    server.ask("SADD", "order:__partitions__", key)
    server.add(f"order:{key}{lane}", *all_data)


def fill(server: RedisServer) -> None:
    server.add("order:backfill", "-b1", "-b2")
    server.add("order", "-p1", "-p2")
    for key in "kl":
        add(server, key, ":backfill", f"{key}b1", f"{key}b2")
        add(server, key, "", f"{key}p1", f"{key}p2")


def check_order(found: list[str]) -> None:
    assert all("p" in each for each in found[:6]), found
    # Fair: the first of each comes before the second of any.
    for half in (found[:6], found[6:]):
        assert [each[-1] for each in half] == ["1"] * 3 + ["2"] * 3, found


def test_primary_lanes_of_all_partitions_go_before_any_backfill_lane(redis_server: RedisServer) -> None:
    fill(redis_server)
    with subscribe(redis_server) as subscriber:
        check_order(drain(subscriber, 12))


async def test_primary_lanes_of_all_partitions_go_before_any_backfill_lane_asyncio(redis_server: RedisServer) -> None:
    fill(redis_server)
    async with AsyncSubscriber(redis_server.url, "order", "mails", partitions=True, **options()) as subscriber:
        check_order(await adrain(subscriber, 12))


def test_the_group_has_one_entry_of_a_partition_at_a_time(redis_server: RedisServer) -> None:
    add(redis_server, "k", "", "1", "2", "3")
    with subscribe(redis_server, consumer="one") as one, subscribe(redis_server, consumer="other") as other:
        first = take(one)
        found: list[Entry] = []
        waits = threading.Thread(target=lambda: found.append(take(other)))
        waits.start()
        # The other one has seen all there was before, and gets what is of another key.
        redis_server.wait_for_blocked()
        add(redis_server, "l", "", "of another")
        waits.join()
        assert found[0].data == "of another"
        assert one.ack(first)
        second = take(other)
        assert (first.data, second.data) == ("1", "2")
        assert other.ack(second)
        assert drain(one, 1) == ["3"]


def test_a_partition_that_is_new_is_found_and_an_urgent_arrival_is_next(redis_server: RedisServer) -> None:
    add(redis_server, "k", ":backfill", "b1", "b2", "b3")
    with subscribe(redis_server) as subscriber:
        assert drain(subscriber, 1) == ["b1"]
        add(redis_server, "k", "", "urgent")
        assert drain(subscriber, 2) == ["urgent", "b2"]
        b3 = take(subscriber)
        add(redis_server, "new", "", "found")
        assert drain(subscriber, 1) == ["found"]
        assert subscriber.ack(b3)


def test_what_another_thread_settles_lets_its_partition_go_on(redis_server: RedisServer) -> None:
    add(redis_server, "k", "", "1", "2")
    with subscribe(redis_server) as subscriber:
        first = take(subscriber)
        found: list[Any] = []
        waits = threading.Thread(target=lambda: found.extend(drain(subscriber, 1)))
        waits.start()
        redis_server.wait_for_blocked()
        assert subscriber.ack(first)
        waits.join()
        assert found == ["2"]


def test_an_entry_that_fails_holds_up_its_own_partition_only_and_dies_there(redis_server: RedisServer) -> None:
    add(redis_server, "k", ":backfill", "bad", "after")
    add(redis_server, "l", ":backfill", "1", "2")
    order: list[Any] = []
    with subscribe(redis_server) as subscriber:
        while len(order) < 4:
            entry = take(subscriber)
            if entry.data != "bad":
                assert subscriber.ack(entry)
                order.append(entry.data)
            elif subscriber.fail(entry, "no") == "dead":
                order.append("bad")
    assert order.index("bad") < order.index("after")
    assert redis_server.ask("XLEN", "order:k:backfill:dlq") == 1
    # Who holds nothing is in no group.
    assert redis_server.ask("XINFO", "CONSUMERS", "order:k:backfill", "mails") == []


def test_what_a_dead_consumer_held_comes_first_and_its_successors_wait_for_it(redis_server: RedisServer) -> None:
    add(redis_server, "k", "", "1", "2")
    redis_server.ask("XGROUP", "CREATE", "order:k", "mails", "0")
    redis_server.ask("XREADGROUP", "GROUP", "mails", "dead", "COUNT", 1, "STREAMS", "order:k", ">")
    with subscribe(redis_server, claim_idle_s=IDLE_S) as heir:
        first = take(heir)
        assert (first.data, first.attempt) == ("1", 2)
        assert heir.ack(first)
        assert drain(heir, 1) == ["2"]


def test_who_lost_an_entry_to_another_cannot_acknowledge_it(redis_server: RedisServer) -> None:
    add(redis_server, "k", "", "1")
    with subscribe(redis_server) as slow:
        lost = take(slow)
        redis_server.ask("XCLAIM", "order:k", "mails", "other", 0, lost.id)
        assert not slow.ack(lost)
    assert redis_server.pending("order:k") == 1


@pytest.mark.parametrize(
    "breaks", ["SET order:bad text", "ACL SETUSER default resetkeys ~order:good* ~order:__* ~order"]
)
def test_a_partition_that_cannot_be_read_is_alone_with_that(redis_server: RedisServer, breaks: str) -> None:
    add(redis_server, "good", "", "1", "2")
    redis_server.ask("SADD", "order:__partitions__", "bad")
    redis_server.ask(*breaks.split())
    with subscribe(redis_server) as subscriber:
        assert drain(subscriber, 2) == ["1", "2"]
        while subscriber.broken is None:
            redis_server.add("order:good", "3")
            assert drain(subscriber, 1) == ["3"]
        assert "order:b" in str(subscriber.broken)


def test_a_group_that_begins_with_what_is_new_gets_all_of_partitions_that_come_later(redis_server: RedisServer) -> None:
    add(redis_server, "old", "", "old")
    with subscribe(redis_server, start="$") as subscriber:
        add(redis_server, "old", "", "1")
        assert drain(subscriber, 1) == ["1"]
    # Nobody reads now.
    add(redis_server, "late", "", "2")
    with subscribe(redis_server, start="$") as subscriber:
        assert drain(subscriber, 1) == ["2"]


def test_keys_that_would_name_another_stream_are_passed_over(redis_server: RedisServer) -> None:
    redis_server.ask("SADD", "order:__partitions__", "backfill", "dlq", "a:b", "__x__")
    redis_server.add("order:dlq", "dead")
    redis_server.add("order:backfill", "late")
    with subscribe(redis_server) as subscriber:
        assert drain(subscriber, 1) == ["late"]


def test_dead_letters_are_of_all_partitions(redis_server: RedisServer) -> None:
    for key in "kl":
        add(redis_server, key, "", "1")
        # Dead letters of two partitions may have one id.
        redis_server.ask("XADD", f"order:{key}:dlq", "7-7", "data", '{"data": 1}')
    with DeadLetters(redis_server.url, "order", lanes=Lanes()) as letters:
        assert {letter.name for letter in letters.list()} == {"order:k:dlq/7-7", "order:l:dlq/7-7"}
        with pytest.raises(ValueError, match="order:k:dlq/7-7"):
            letters.inspect("7-7")
        assert letters.replay("order:k:dlq/7-7")
        assert redis_server.ask("XLEN", "order:k") == 2
        assert letters.replay_all() == 1
        assert letters.purge() == 0


def test_a_subscriber_says_what_it_never_reads_and_which_setting_reads_it(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    def unread(**more: Any) -> str | None:
        with Subscriber(redis_server.url, "order", "mails", **options(**more)) as subscriber:
            return subscriber.unread()

    one = Lanes(enabled=False)
    redis_server.add("order", "1")
    assert unread(lanes=one) is None
    redis_server.add("order:backfill", "late", "later")
    assert not caplog.messages
    of_lanes = "this subscriber never reads order:backfill (2 entries): set `lanes` as whoever writes them has it"
    assert unread(lanes=one) == of_lanes
    assert caplog.messages == [f"order: {of_lanes}"]
    assert unread() is None
    add(redis_server, "7", "", "1")
    of_parts = "this subscriber never reads order:7 (1 entry): set `partitions` as whoever writes them has it"
    assert unread() == of_parts
    assert unread(partitions=True) is None


async def test_a_subscriber_says_with_asyncio_what_it_never_reads(
    redis_server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    redis_server.add("order:backfill", "late")
    async with AsyncSubscriber(redis_server.url, "order", "mails") as subscriber:
        assert caplog.messages == [f"order: {await subscriber.unread()}"]
