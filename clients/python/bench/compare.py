"""What this library costs over the ones below it: same broker, same run, one after the other in turns, medians.

python bench/compare.py --rounds 9 amqp://127.0.0.1:5672 http://127.0.0.1:15672
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import aio_pika
import pika

from overtake import AsyncClient, Client, Priority

BODY = b"x" * 256
PRIORITY = Priority.HIGH
QUEUE = "bench-python"
WINDOW = 100
#: Publishes that wait for their confirm at once, with asyncio.
CONCURRENCY = 100


class Rates:
    """Messages in a second, and this process's own time for each, by name, a number for each round."""

    def __init__(self) -> None:
        self.of: dict[str, list[float]] = {}
        self.cost_us: dict[str, list[float]] = {}

    @contextmanager
    def measured(self, name: str, messages: int) -> Iterator[None]:
        """Measures what happens inside."""
        start, own_start = time.perf_counter(), time.process_time()
        yield
        took, own = time.perf_counter() - start, time.process_time() - own_start
        self.of.setdefault(name, []).append(messages / took)
        self.cost_us.setdefault(name, []).append(own / messages * 1e6)

    def median(self, name: str) -> float:
        """Of all rounds."""
        return statistics.median(self.of[name])

    def ratio(self, ours: str, theirs: str) -> float:
        """Round by round, and of these the median: what else the machine does meets both."""
        pairs = zip(self.of[ours], self.of[theirs], strict=True)
        return statistics.median(mine / other for mine, other in pairs)


def declare(http: str) -> None:
    """An empty queue."""
    with Client(ARGUMENTS.amqp, http=http) as client:
        client.declare_queue(QUEUE, scheme="signed")


# ---- plain


def pika_publish(channel: Any, count: int) -> None:
    for _ in range(count):
        properties = pika.BasicProperties(priority=int(PRIORITY), delivery_mode=2)
        channel.basic_publish("", QUEUE, BODY, properties, mandatory=True)


def pika_consume(connection: Any, channel: Any, count: int) -> None:
    channel.basic_qos(prefetch_count=WINDOW)
    for number, (method, _, _) in enumerate(channel.consume(QUEUE), 1):
        channel.basic_ack(method.delivery_tag)
        if number == count:
            break
    channel.cancel()


def plain_publish(client: Client, count: int) -> None:
    for _ in range(count):
        client.publish(QUEUE, BODY, priority=PRIORITY)


def plain_consume(client: Client, count: int) -> None:
    with client.consume(QUEUE, WINDOW) as consumer:
        for number, delivery in enumerate(consumer, 1):
            delivery.ack()
            if number == count:
                break


def plain(rates: Rates, count: int, rounds: int) -> None:
    """Publishes one by one with confirms, and consumes with acks."""
    with (
        pika.BlockingConnection(pika.URLParameters(ARGUMENTS.amqp)) as connection,
        Client(ARGUMENTS.amqp, http=ARGUMENTS.http) as client,
    ):
        channel = connection.channel()
        channel.confirm_delivery()

        def ours() -> None:
            with rates.measured("publish one by one, plain", count):
                plain_publish(client, count)
            with rates.measured("consume and ack, plain", count):
                plain_consume(client, count)

        def theirs() -> None:
            with rates.measured("publish one by one, pika", count):
                pika_publish(channel, count)
            with rates.measured("consume and ack, pika", count):
                pika_consume(connection, channel, count)

        in_turns(ours, theirs, rounds)


# ---- asyncio


async def at_once(count: int, publish: Callable[[], Awaitable[object]]) -> None:
    """So many publishes, some at once: each of these tasks does its part, one after the other."""

    async def part() -> None:
        for _ in range(count // CONCURRENCY):
            await publish()

    await asyncio.gather(*(part() for _ in range(CONCURRENCY)))


async def aio(rates: Rates, count: int, rounds: int) -> None:
    """Publishes many at once with confirms, and consumes with acks."""
    connection = await aio_pika.connect(ARGUMENTS.amqp)
    async with connection, AsyncClient(ARGUMENTS.amqp, http=ARGUMENTS.http) as client:
        channel = await connection.channel()
        exchange = channel.default_exchange

        async def their_publish() -> None:
            message = aio_pika.Message(BODY, priority=int(PRIORITY), delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            await exchange.publish(message, QUEUE)

        async def our_publish() -> None:
            await client.publish(QUEUE, BODY, priority=PRIORITY)

        async def ours() -> None:
            with rates.measured("publish one by one, asyncio", count // 4):
                for _ in range(count // 4):
                    await our_publish()
            with rates.measured("publish many, asyncio", count):
                await at_once(count, our_publish)
            total = count + count // 4
            with rates.measured("consume and ack, asyncio", total):
                number = 0
                async with client.consume(QUEUE, WINDOW) as consumer:
                    async for delivery in consumer:
                        await delivery.ack()
                        number += 1
                        if number == total:
                            break

        async def theirs() -> None:
            with rates.measured("publish one by one, aio-pika", count // 4):
                for _ in range(count // 4):
                    await their_publish()
            with rates.measured("publish many, aio-pika", count):
                await at_once(count, their_publish)
            total = count + count // 4
            queue = await channel.get_queue(QUEUE)
            await channel.set_qos(prefetch_count=WINDOW)
            with rates.measured("consume and ack, aio-pika", total):
                number = 0
                async with queue.iterator() as messages:
                    async for message in messages:
                        await message.ack()
                        number += 1
                        if number == total:
                            break

        for number in range(rounds):
            for each in (ours, theirs) if number % 2 else (theirs, ours):
                await each()


def in_turns(ours: Callable[[], None], theirs: Callable[[], None], rounds: int) -> None:
    """Who goes first changes from round to round."""
    for number in range(rounds):
        for each in (ours, theirs) if number % 2 else (theirs, ours):
            each()


ROWS = [
    ("publish one by one, plain", "publish one by one, pika"),
    ("consume and ack, plain", "consume and ack, pika"),
    ("publish one by one, asyncio", "publish one by one, aio-pika"),
    ("publish many, asyncio", "publish many, aio-pika"),
    ("consume and ack, asyncio", "consume and ack, aio-pika"),
]


def main() -> None:
    declare(ARGUMENTS.http)
    rates = Rates()
    plain(rates, ARGUMENTS.messages, ARGUMENTS.rounds)
    asyncio.run(aio(rates, ARGUMENTS.messages, ARGUMENTS.rounds))
    print(f"messages a second, medians of {ARGUMENTS.rounds} rounds of {ARGUMENTS.messages}; window {WINDOW},")
    print(f"{len(BODY)} bytes, {CONCURRENCY} publishes at once where they are many\n")
    print(f"{'':34}{'overtake':>10}{'below':>10}{'ratio':>8}{'own time, µs':>20}")
    for ours, theirs in ROWS:
        mine, other = statistics.median(rates.cost_us[ours]), statistics.median(rates.cost_us[theirs])
        print(
            f"{ours:34}{rates.median(ours):10.0f}{rates.median(theirs):10.0f}{rates.ratio(ours, theirs):8.2f}"
            f"{mine:10.0f}{other:10.0f}"
        )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("amqp")
    parser.add_argument("http")
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--messages", type=int, default=1000)
    return parser.parse_args()


if __name__ == "__main__":
    ARGUMENTS = arguments()
    main()
