"""aio-pika: the same ideas as coroutines, and its own patterns on top: RPC, master and worker, reconnecting."""

import asyncio
import contextlib
import urllib.parse

import aio_pika
import pytest
import pytest_asyncio
from aio_pika.exceptions import ChannelNotFoundEntity, ChannelPreconditionFailed, DeliveryError, QueueEmpty
from aio_pika.patterns import RPC, Master


@pytest_asyncio.fixture
async def connection(url):
    async with await aio_pika.connect(url) as connection:
        yield connection


@pytest_asyncio.fixture
async def channel(connection):
    return await connection.channel()


async def publish(channel, queue, *bodies, **properties):
    for body in bodies:
        await channel.default_exchange.publish(aio_pika.Message(body, **properties), queue.name)


async def take(queue, count):
    """The bodies of the next `count`, acknowledged."""
    bodies = []
    async with queue.iterator() as messages:
        async for message in messages:
            await message.ack()
            bodies.append(message.body)
            if len(bodies) == count:
                return bodies


async def test_urgent_overtakes_bulk(channel):
    queue = await channel.declare_queue(exclusive=True, arguments={"x-max-priority": 9})
    for number in range(50):
        await publish(channel, queue, b"%d" % (number % 10), priority=number % 10)
    assert await take(queue, 50) == [b"%d" % priority for priority in range(9, -1, -1) for _ in range(5)]


async def test_urgent_overtakes_what_a_busy_consumer_has_not_got_yet(connection, channel):
    queue = await channel.declare_queue(exclusive=True, arguments={"x-max-priority": 9})
    await publish(channel, queue, b"bulk 1", b"bulk 2", priority=1)
    worker = await connection.channel()
    await worker.set_qos(prefetch_count=1)
    got = []
    async with (await worker.get_queue(queue.name)).iterator() as messages:
        async for message in messages:
            got.append(message.body)
            if len(got) == 1:
                await publish(channel, queue, b"urgent", priority=9)
            await message.ack()
            if len(got) == 3:
                break
    assert got == [b"bulk 1", b"urgent", b"bulk 2"]


async def test_what_a_handler_throws_on_is_put_back_in_its_place(channel):
    queue = await channel.declare_queue(exclusive=True)
    await publish(channel, queue, b"a", b"b")
    message = await queue.get()
    with contextlib.suppress(ValueError):
        async with message.process(requeue=True):
            raise ValueError
    again = await queue.get()
    assert (again.body, again.redelivered) == (b"a", True)
    await again.ack()
    assert (await queue.get(no_ack=True)).body == b"b"
    with pytest.raises(QueueEmpty):
        await queue.get()


async def test_a_dead_letter_tells_its_story(channel):
    graveyard = await channel.declare_queue(exclusive=True)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": graveyard.name}
    queue = await channel.declare_queue(exclusive=True, arguments=arguments)
    await publish(channel, queue, b"a", expiration=0.05, headers={"mine": "kept"})
    async with graveyard.iterator() as messages:
        dead = await anext(messages)
    [death] = dead.headers["x-death"]
    assert (death["reason"], death["queue"], death["count"]) == ("expired", queue.name, 1)
    assert dead.headers["mine"] == "kept"


async def test_a_thousand_confirms_at_once(channel):
    queue = await channel.declare_queue(exclusive=True)
    await asyncio.gather(*(publish(channel, queue, b"%d" % number) for number in range(1000)))
    assert len(await take(queue, 1000)) == 1000


async def test_what_nobody_wants_comes_back(connection):
    channel = await connection.channel(on_return_raises=True)
    with pytest.raises(DeliveryError) as returned:
        await channel.default_exchange.publish(aio_pika.Message(b"lost"), "nobody", mandatory=True)
    assert returned.value.message.body == b"lost"


async def test_a_transaction(connection, channel):
    transactional = await connection.channel(publisher_confirms=False)
    queue = await channel.declare_queue(exclusive=True)
    async with transactional.transaction():
        await publish(transactional, queue, b"kept")
        assert await queue.get(fail=False) is None
    with contextlib.suppress(ValueError):
        async with transactional.transaction():
            await publish(transactional, queue, b"dropped")
            raise ValueError
    assert await take(queue, 1) == [b"kept"]
    assert await queue.get(fail=False) is None


async def test_exchanges_feed_exchanges(channel, name):
    source = await channel.declare_exchange(name + "-source", aio_pika.ExchangeType.TOPIC, auto_delete=True)
    target = await channel.declare_exchange(name + "-target", aio_pika.ExchangeType.HEADERS, auto_delete=True)
    queue = await channel.declare_queue(exclusive=True)
    await target.bind(source, "urgent.#")
    await queue.bind(target, arguments={"x-match": "any", "colour": "red"})
    for key, colour in (("urgent.mail", "red"), ("urgent.mail", "blue"), ("bulk.mail", "red")):
        await source.publish(aio_pika.Message(f"{key} {colour}".encode(), headers={"colour": colour}), key)
    assert await take(queue, 1) == [b"urgent.mail red"]


async def test_errors_have_their_names(connection, name):
    with pytest.raises(ChannelNotFoundEntity):
        await (await connection.channel()).declare_queue(name, passive=True)
    channel = await connection.channel()
    await channel.declare_queue(name, exclusive=True)
    with pytest.raises(ChannelPreconditionFailed):
        await channel.declare_queue(name, exclusive=True, arguments={"x-max-priority": 3})


async def test_a_call_to_another_process(connection):
    """The RPC pattern: answers through an exclusive queue, calls without a callee return as dead letters."""
    async with connection.channel() as server, connection.channel() as client:
        callee = await RPC.create(server)
        caller = await RPC.create(client)

        async def multiply(*, x, y):
            return x * y

        async def fail():
            raise ValueError("no")

        await callee.register("clients.multiply", multiply, auto_delete=True)
        await callee.register("clients.fail", fail, auto_delete=True)
        answers = await asyncio.gather(*(caller.proxy.clients.multiply(x=x, y=3) for x in range(100)))
        assert answers == [3 * x for x in range(100)]
        with pytest.raises(ValueError, match="no"):
            await caller.proxy.clients.fail()
        await caller.close()
        await callee.close()


async def test_a_master_and_its_workers(connection):
    async with connection.channel() as channel:
        master = Master(channel)
        done = asyncio.Queue()

        async def work(*, number):
            await done.put(number)

        workers = [await master.create_worker("clients.work", work, auto_delete=True) for _ in range(3)]
        for number in range(100):
            await master.create_task("clients.work", {"number": number})
        assert sorted([await done.get() for _ in range(100)]) == list(range(100))
        for worker in workers:
            await worker.close()


async def test_a_new_secret_is_taken(connection):
    await connection.update_secret("guest", reason="rotation")
    assert not connection.is_closed


async def test_a_robust_connection_takes_up_its_work_again(url, channel, name):
    """The line is cut under a consumer with a message in hand; it comes back to the same consumer."""
    queue = await channel.declare_queue(name)
    async with Line(url) as line:
        robust = await aio_pika.connect_robust(line.url, reconnect_interval=0.05)
        async with robust:
            got = asyncio.Queue()
            await (await (await robust.channel()).declare_queue(name)).consume(got.put)
            await publish(channel, queue, b"in hand")
            assert not (await got.get()).redelivered
            line.cut()
            again = await got.get()
            assert (again.body, again.redelivered) == (b"in hand", True)
            await again.ack()
            await publish(channel, queue, b"next")
            assert (await got.get()).body == b"next"
    await queue.delete(if_unused=False, if_empty=False)


class Line:
    """Carries bytes to the broker and back until it is cut."""

    def __init__(self, url):
        self.target = urllib.parse.urlsplit(url)
        self.ends = set()

    async def __aenter__(self):
        self.server = await asyncio.start_server(self.carry, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        credentials, _, _ = self.target.netloc.rpartition("@")
        self.url = self.target._replace(netloc=f"{credentials}@127.0.0.1:{port}").geturl()
        return self

    async def __aexit__(self, *_):
        self.server.close()
        self.cut()

    def cut(self):
        for end in self.ends:
            end.transport.abort()
        self.ends.clear()

    async def carry(self, reader, writer):
        there_reader, there = await asyncio.open_connection(self.target.hostname, self.target.port)
        self.ends |= {writer, there}
        with contextlib.suppress(OSError):
            await asyncio.gather(copy(reader, there), copy(there_reader, writer))


async def copy(reader, writer):
    while piece := await reader.read(65536):
        writer.write(piece)
        await writer.drain()
    writer.close()
