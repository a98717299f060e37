"""Questions and their answers, by `amq.rabbitmq.reply-to`: no queue is made for them.

An answer finds only the channel that asked, so questions have a channel of their own, and those that are open when it is lost have no
answer any more: whoever asked hears so, and asks again if that does no harm.
"""

from __future__ import annotations

import queue
import uuid
from typing import Any

from .consumer import Delivery, Reply
from .errors import OvertakeError, timed_out, unanswered
from .link import Link
from .message import Message
from .publisher import Publish, Publisher, Waiter

REPLY_TO = "amq.rabbitmq.reply-to"


class Requests:
    """The channel of questions: a publisher, and a consumer on the same channel."""

    def __init__(self, link: Link, reply: Reply) -> None:
        self._link = link
        self._reply = reply
        self._open: dict[str, tuple[Publish, queue.SimpleQueue[Delivery | OvertakeError]]] = {}
        self._publisher = _OnReplies(link, self)
        link.attach(self._publisher)

    def ask(self, queue_name: str, message: Message, exchange: str, timeout: float | None) -> Delivery:
        """Publishes a question and waits for its answer."""
        answers: queue.SimpleQueue[Delivery | OvertakeError] = queue.SimpleQueue()
        waiter = Waiter(1)
        publish = Publish(message, exchange, queue_name, waiter)
        correlation_id = publish.properties.correlation_id = uuid.uuid4().hex
        publish.properties.reply_to = REPLY_TO
        self._open[correlation_id] = (publish, answers)
        try:
            self._publisher.publish([publish], waiter, timeout)
            answer = answers.get(timeout=timeout)
        except queue.Empty:
            assert timeout is not None
            raise timed_out(f"the answer from {queue_name}", timeout, self._link.why) from None
        finally:
            self._open.pop(correlation_id, None)
        if isinstance(answer, OvertakeError):
            raise answer
        return answer

    def on_answer(self, channel: Any, method: Any, properties: Any, body: bytes) -> None:
        """Runs under the baton."""
        _, answers = self._open.get(properties.correlation_id, (None, None))
        if answers is not None:
            delivery = Delivery(self._link, self._reply, REPLY_TO, channel, method, properties, body)
            delivery._tag = None  # It was settled as it was given out.
            answers.put(delivery)

    def on_lost(self, error: OvertakeError) -> None:
        """Runs under the baton: nothing that was asked is answered any more."""
        for publish, answers in list(self._open.values()):
            if publish.is_sent:
                answers.put(error)


class _OnReplies(Publisher):
    """Publishes once answers can be heard on its channel; nothing is published again."""

    def __init__(self, link: Link, requests: Requests) -> None:
        super().__init__(link, is_repeating=False)
        self._requests = requests

    @property
    def is_busy(self) -> bool:
        """An answer may come whenever it likes."""
        return True

    def on_channel(self, channel: Any) -> None:
        channel.basic_consume(
            REPLY_TO, self._requests.on_answer, auto_ack=True, callback=lambda _: Publisher.on_channel(self, channel)
        )

    def on_down(self, error: OvertakeError) -> None:
        lost = unanswered(error)
        super().on_down(lost)
        self._requests.on_lost(lost)

    def on_end(self, error: OvertakeError) -> None:
        super().on_end(error)
        self._requests.on_lost(error)
