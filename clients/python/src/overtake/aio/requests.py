"""Questions and their answers, by `amq.rabbitmq.reply-to`: no queue is made for them.

An answer finds only the channel that asked, so questions have a channel of their own, and those that are open when it is lost have no
answer any more: whoever asked hears so, and asks again if that does no harm.
"""

from __future__ import annotations

import asyncio
import uuid

from aiormq.abc import AbstractChannel as Underlay
from aiormq.abc import DeliveredMessage

from ..errors import OvertakeError, timed_out, unanswered
from ..message import Message
from ..requests import REPLY_TO
from .consumer import AsyncDelivery, Reply
from .link import Link
from .publisher import Publish, Publisher


class Requests(Publisher):
    """The channel of questions: a publisher, and a consumer on the same channel."""

    def __init__(self, link: Link, reply: Reply, *, timeout: float | None) -> None:
        super().__init__(link, timeout=timeout, is_repeating=False)
        self._reply = reply
        self._questions: dict[str, tuple[Publish, asyncio.Future[AsyncDelivery]]] = {}

    async def ask(self, queue: str, message: Message, exchange: str, timeout: float | None) -> AsyncDelivery:
        """Publishes a question and waits for its answer."""
        publish = Publish(message, exchange, queue)
        correlation_id = publish.properties.correlation_id = uuid.uuid4().hex
        publish.properties.reply_to = REPLY_TO
        answer: asyncio.Future[AsyncDelivery] = asyncio.get_running_loop().create_future()
        self._questions[correlation_id] = (publish, answer)
        try:
            async with asyncio.timeout(timeout):
                await self.publish(publish)
                return await answer
        except TimeoutError as error:
            if isinstance(error, OvertakeError):
                raise
            assert timeout is not None
            raise timed_out(f"the answer from {queue}", timeout, self._link.why) from None
        finally:
            answer.cancel()
            self._questions.pop(correlation_id, None)

    async def set_up(self, channel: Underlay) -> None:
        """Answers are heard on the channel on which is asked."""
        await channel.basic_consume(REPLY_TO, self._on_answer, no_ack=True)

    def on_down(self, error: OvertakeError) -> None:
        super().on_down(error)
        self._fail(unanswered(error))

    def on_end(self, error: OvertakeError) -> None:
        super().on_end(error)
        self._fail(error)

    async def _on_answer(self, message: DeliveredMessage) -> None:
        delivery = AsyncDelivery(self._reply, REPLY_TO, message)
        delivery._tag = None  # It was settled as it was given out.
        _, answer = self._questions.get(delivery.correlation_id or "", (None, None))
        if answer is not None and not answer.done():
            answer.set_result(delivery)

    def _fail(self, error: OvertakeError) -> None:
        for publish, answer in self._questions.values():
            if publish.is_sent and not answer.done():
                answer.set_exception(error)
