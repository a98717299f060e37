"""Handlers of the plain client: threads that take from one consumer, each message in a scope of its priority."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from .consumer import Consumer, Delivery
from .durations import Duration, seconds
from .errors import OvertakeError, Unroutable
from .handling import End, ending_of, is_fatal, join_all, log, reply_of
from .priority import scope_of

__all__ = ["Handling"]

Handler = Callable[[Delivery], Any]


class Handling:
    """A handler at work, until it is stopped or ends by itself.

    `with` stops it at the end, and raises why it ended if it did so by itself: the broker ended its consumer, or a handler raised
    `SystemExit` or `KeyboardInterrupt`.
    """

    def __init__(self, consumer: Consumer, handler: Handler, concurrency: int, name: str) -> None:
        self._consumer = consumer
        self._handler = handler
        self._end = End(consumer.queue)
        self._lock = threading.Lock()
        self._at_work = concurrency
        self._threads = [
            threading.Thread(target=self._work, name=f"{name} {number}", daemon=True) for number in range(concurrency)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Takes nothing more, and waits until what is in hand is finished. What nobody began is put back.

        A handler that stops itself does not wait.
        """
        self._consumer.stop()
        if threading.current_thread() not in self._threads:
            for thread in self._threads:
                thread.join()

    def wait(self, timeout: Duration | None = None) -> None:
        """Waits until somebody stops it, or for so long; a number is in seconds. If it ended by itself, the reason is raised."""
        join_all(self._threads, seconds(timeout, "timeout"))
        self._end.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._end.leave(error)

    def _work(self) -> None:
        try:
            for delivery in self._consumer:
                self._handle(delivery)
        except BaseException as error:
            # Also what somebody throws into this thread: the others end, too, and nothing stays in hand.
            self._end.note(error)
            self._consumer.stop()
        finally:
            with self._lock:
                self._at_work -= 1
                is_last = self._at_work == 0
            if is_last:
                self._consumer.close()

    def _handle(self, delivery: Delivery) -> None:
        failed: BaseException | None = None
        try:
            with scope_of(delivery.priority):
                reply = reply_of(self._handler(delivery), delivery)
                if reply is not None:
                    _answer(delivery, reply)
        except BaseException as error:
            failed = error
        if is_fatal(failed):
            # First: else its message would come here once more.
            self._consumer.stop()
        try:
            delivery.settle(ending_of(failed, delivery))
        except OvertakeError as error:
            # The client has ended, and its connection with it: the message comes again.
            log.debug("a message of %s was handled and is not settled: %s", delivery.queue, error)
        if failed is not None and is_fatal(failed):
            raise failed


def _answer(delivery: Delivery, reply: bytes | str) -> None:
    try:
        delivery.reply(reply)
    except Unroutable:
        log.info("nobody waits for an answer of %s any more", delivery.queue)
