"""Protean, the library whose streams these are: its outbox and its engine beside our subscriber, on the same streams."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from protean.utils.processing import Priority as TheirPriority
from protean.utils.processing import current_priority as their_current_priority
from protean.utils.processing import processing_priority as their_priority

from overtake import Priority, current_priority
from overtake.streams import DeadLetters, Entry, Lane, Lanes, Retry, Subscriber

from . import protean_shop
from .protean_shop import DATABASE, REDIS, Shop
from .redis_server import RedisServer

NewShop = Callable[..., Shop]

#: It puts its own name before that of the aggregate.
CATEGORY = "shop::customer"


@pytest.fixture
def new_shop(redis_server: RedisServer, tmp_path: Path) -> NewShop:
    """The application, which may be made again over the same tables and streams."""

    def make(handler: Callable[[str], None] | None = None) -> Shop:
        shop = Shop(tmp_path / "shop.db", redis_server.url, handler)
        shop.create()
        return shop

    return make


def subscribe(server: RedisServer, group: str, **more: Any) -> Subscriber:
    retry = Retry(attempts=2, initial_s=0.005)
    return Subscriber(server.url, CATEGORY, group, lanes=Lanes(), retry=retry, **more)


def take(subscriber: Subscriber) -> Entry:
    entry = subscriber.next()
    assert entry is not None
    return entry


def tiers(subscriber: Subscriber, count: int) -> list[str]:
    found = []
    for _ in range(count):
        entry = take(subscriber)
        assert subscriber.ack(entry)
        found.append(entry.data["tier"])
    return found


def write_both(shop: Shop) -> None:
    """Three of a migration, then two urgent ones."""
    with their_priority(TheirPriority.LOW):
        shop.write("low 1", "low 2", "low 3")
    shop.write("now 1", "now 2")


def test_what_its_outbox_publishes_we_read_with_the_urgent_lane_first(
    redis_server: RedisServer, new_shop: NewShop
) -> None:
    shop = new_shop()
    write_both(shop)
    shop.run()
    with subscribe(redis_server, "ours") as subscriber:
        assert tiers(subscriber, 5) == ["now 1", "now 2", "low 1", "low 2", "low 3"]
    assert redis_server.ask("XLEN", f"{CATEGORY}:backfill") == 3


def test_what_it_says_of_a_migration_is_handled_as_one(redis_server: RedisServer, new_shop: NewShop) -> None:
    shop = new_shop()
    with their_priority(TheirPriority.BULK):
        shop.write("low")
    shop.run()
    scopes: list[int] = []
    done = threading.Event()

    def handler(_: Entry) -> None:
        scopes.append(current_priority())
        done.set()

    with subscribe(redis_server, "ours").handle(handler):
        done.wait()
    # It writes 0 into the metadata of every event; the lane knows better.
    assert scopes == [Priority.LOW]


def test_two_groups_have_everything_each(redis_server: RedisServer, new_shop: NewShop) -> None:
    theirs: list[str] = []
    shop = new_shop(theirs.append)
    write_both(shop)
    shop.run()
    with subscribe(redis_server, "ours") as subscriber:
        ours = tiers(subscriber, 5)
    assert sorted(ours) == sorted(theirs) == ["low 1", "low 2", "low 3", "now 1", "now 2"]


def test_in_one_group_each_entry_is_handled_once(redis_server: RedisServer, new_shop: NewShop) -> None:
    theirs: list[str] = []
    new_shop().write(*(f"first {number}" for number in range(10)))
    shop = new_shop(theirs.append)
    with subscribe(redis_server, shop.group, batch=1) as subscriber:
        # Its outbox publishes, and its subscription takes what we have not.
        shop.run()
        held = len(theirs)
        with their_priority(TheirPriority.LOW):
            shop.write(*(f"then {number}" for number in range(10)))
        publisher = new_shop()
        _publish_only(publisher)
        ours = tiers(subscriber, 4)
        new_shop(theirs.append).run()
        assert held == 10
        assert sorted(ours + theirs[held:]) == [f"then {number}" for number in range(10)]
        assert len(ours) == 4
    for stream in (CATEGORY, f"{CATEGORY}:backfill"):
        assert redis_server.pending(stream, shop.group) == 0


def _publish_only(shop: Shop) -> None:
    """Its outbox processor, without its subscriptions."""
    shop.domain.registry._elements["EVENT_HANDLER"].clear()
    shop.run()


def test_what_fails_with_us_its_tools_list_and_replay(
    redis_server: RedisServer, new_shop: NewShop, tmp_path: Path
) -> None:
    theirs: list[str] = []
    shop = new_shop(theirs.append)
    write_both(shop)
    _publish_only(new_shop())
    with subscribe(redis_server, shop.group) as subscriber:
        for _ in range(5):
            entry = take(subscriber)
            subscriber.reject(entry, "no room") if entry.data["tier"].endswith("1") else subscriber.ack(entry)
    with shop.domain.domain_context():
        listed = shop.broker.dlq_list([f"{CATEGORY}:dlq", f"{CATEGORY}:backfill:dlq"])
    assert [(each.stream, each.failure_reason, each.retry_count) for each in listed] == [
        (f"{CATEGORY}:backfill", "no room", 1),
        (CATEGORY, "no room", 1),
    ]
    environment = {**os.environ, DATABASE: str(tmp_path / "shop.db"), REDIS: redis_server.url, "COLUMNS": "200"}
    domain = f"--domain={protean_shop.__file__}"

    def protean(*words: str) -> str:
        command = [str(Path(sys.executable).parent / "protean"), "dlq", *words, domain, f"--subscription={CATEGORY}"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    told = protean("list")
    assert "no room" in told
    assert "2 DLQ message(s) found" in told
    assert "Replayed message" in protean("replay", listed[0].dlq_id)
    assert redis_server.ask("XLEN", f"{CATEGORY}:backfill:dlq") == 0
    new_shop(theirs.append).run()
    assert theirs == ["low 1"]


def test_what_fails_with_it_our_tools_list_and_replay_to_its_lane(redis_server: RedisServer, new_shop: NewShop) -> None:
    def refuse(tier: str) -> None:
        raise KeyError(tier)

    shop = new_shop(refuse)
    write_both(shop)
    shop.run()
    with DeadLetters(redis_server.url, CATEGORY, lanes=Lanes()) as letters:
        found = letters.list()
        assert sorted(letter.data["tier"] for letter in found) == ["low 1", "low 2", "low 3", "now 1", "now 2"]
        assert {letter.stream for letter in found} == {CATEGORY, f"{CATEGORY}:backfill"}
        assert {letter.group for letter in found} == {shop.group}
        assert letters.replay_all() == 5
        assert letters.list() == []
    with subscribe(redis_server, shop.group) as subscriber:
        entries = [take(subscriber) for _ in range(5)]
        assert [entry.lane for entry in entries] == [Lane.PRIMARY] * 2 + [Lane.BACKFILL] * 3
        for entry in entries:
            assert subscriber.ack(entry)


def test_what_neither_can_read_is_a_dead_letter_for_both(redis_server: RedisServer, new_shop: NewShop) -> None:
    redis_server.ask("XADD", CATEGORY, "*", "data", "garbage")
    shop = new_shop()
    with subscribe(redis_server, "ours") as subscriber:
        shop.write("good")
        shop.run()
        assert tiers(subscriber, 1) == ["good"]
    with shop.domain.domain_context():
        groups = [each.consumer_group for each in shop.broker.dlq_list([f"{CATEGORY}:dlq"])]
    # It does not acknowledge what it cannot read, and lays it aside at every turn.
    assert set(groups) == {"ours", shop.group}
    assert groups.count("ours") == 1
    assert redis_server.pending(CATEGORY, "ours") == 0


#: Its table as `docs/outbox.md` maps it.
RELAY = """
[database]
url = "sqlite:{database}"
order = "created_at"
only = {{ target_broker = "default" }}
notify = false

[database.columns]
stream = {{ column = "metadata_", pointer = "/domain/stream_category" }}
metadata = "metadata_"
attempts = "retry_count"
max_attempts = "max_retries"
next_attempt_at = "next_retry_at"
abandoned_at = false

[sink.redis]
url = "{redis}"

[lanes]
enabled = true
"""


@contextmanager
def our_relay(redis_server: RedisServer, directory: Path) -> Iterator[None]:
    """`overtake relay` on the table of its outbox."""
    config = directory / "relay.toml"
    config.write_text(RELAY.format(database=directory / "shop.db", redis=redis_server.url))
    command = [os.environ["OVERTAKE_BINARY"], "relay", "--config", str(config)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as relay:
        assert relay.stderr is not None
        lines = iter(relay.stderr)
        heard = []
        for line in lines:
            heard.append(line)
            if line.strip() == "ready":
                break
        else:
            pytest.fail("".join(heard))
        # What else it says must go somewhere.
        rest = threading.Thread(target=lambda: list(lines))
        rest.start()
        try:
            yield
        finally:
            relay.terminate()
            rest.join()
    assert relay.returncode == 0


def published(directory: Path) -> int:
    with closing(sqlite3.connect(directory / "shop.db")) as database:
        (count,) = database.execute("SELECT count(*) FROM outbox WHERE status = 'published'").fetchone()
        return int(count)


def test_our_relay_publishes_from_its_outbox_into_its_streams(
    redis_server: RedisServer, new_shop: NewShop, tmp_path: Path
) -> None:
    theirs: list[str] = []
    shop = new_shop(theirs.append)
    write_both(shop)
    with our_relay(redis_server, tmp_path), subscribe(redis_server, "ours") as subscriber:
        assert tiers(subscriber, 5) == ["now 1", "now 2", "low 1", "low 2", "low 3"]
    assert published(tmp_path) == 5
    assert redis_server.ask("XLEN", f"{CATEGORY}:backfill") == 3
    # Its engine finds nothing left to publish, and handles what it reads.
    shop.run()
    assert sorted(theirs) == ["low 1", "low 2", "low 3", "now 1", "now 2"]
    assert redis_server.ask("XLEN", CATEGORY) == 2


def test_what_is_critical_stays_critical_through_our_relay_its_handler_and_the_next_hop(
    redis_server: RedisServer, new_shop: NewShop, tmp_path: Path
) -> None:
    scopes: list[int] = []

    def handler(tier: str) -> None:
        if tier == "first":
            scopes.append(their_current_priority())
            shop.write("second")

    shop = new_shop(handler)
    with their_priority(TheirPriority.CRITICAL):
        shop.write("first")
    with our_relay(redis_server, tmp_path), subscribe(redis_server, "ours") as subscriber:
        entry = take(subscriber)
        # It writes 0 into the metadata of every event; its table knows better.
        assert (entry.data["tier"], entry.priority) == ("first", Priority.CRITICAL)
        assert subscriber.ack(entry)
    shop.run()
    assert scopes == [TheirPriority.CRITICAL]
    assert priorities(tmp_path) == [TheirPriority.CRITICAL] * 2


def priorities(directory: Path) -> list[int]:
    with closing(sqlite3.connect(directory / "shop.db")) as database:
        return [priority for (priority,) in database.execute("SELECT priority FROM outbox")]


def test_its_outbox_processor_can_be_turned_off_so_that_our_relay_works_alone(
    redis_server: RedisServer, new_shop: NewShop, tmp_path: Path
) -> None:
    theirs: list[str] = []
    shop = new_shop(theirs.append)
    shop.domain.config["outbox"]["messages_per_tick"] = 0
    write_both(shop)
    shop.run()
    assert (published(tmp_path), theirs) == (0, [])
    with our_relay(redis_server, tmp_path), subscribe(redis_server, "ours") as subscriber:
        tiers(subscriber, 5)
    shop.run()
    assert sorted(theirs) == ["low 1", "low 2", "low 3", "now 1", "now 2"]


def test_our_relay_and_its_outbox_processor_share_a_table(
    redis_server: RedisServer, new_shop: NewShop, tmp_path: Path
) -> None:
    shop = new_shop()
    written = [f"{number}" for number in range(60)]
    shop.write(*written[:30])
    publisher = new_shop()
    with our_relay(redis_server, tmp_path), subscribe(redis_server, "ours") as subscriber:
        shop.write(*written[30:])
        _publish_only(publisher)
        assert sorted(tiers(subscriber, 60), key=int) == written
    assert published(tmp_path) == 60
    assert redis_server.ask("XLEN", CATEGORY) == 60, "none is there twice"
