"""Handlers of the plain client: threads that take from one consumer, each message in a scope of its priority."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from .consumer import Consumer, Delivery
from .errors import OvertakeError, Unroutable
from .handling import ending_of, log, reply_of
from .priority import scope_of

__all__ = ["Handling"]

Handler = Callable[[Delivery], Any]


class Handling:
    """A handler at work, until it is stopped. `with` stops it at the end."""

    def __init__(self, consumer: Consumer, handler: Handler, concurrency: int, name: str) -> None:
        self._consumer = consumer
        self._handler = handler
        self._error: OvertakeError | None = None
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

    def wait(self, timeout: float | None = None) -> None:
        """Waits until somebody stops it. If the broker ended it, that is raised."""
        for thread in self._threads:
            thread.join(timeout)
        if self._error is not None:
            raise self._error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _work(self) -> None:
        try:
            for delivery in self._consumer:
                self._handle(delivery)
        except OvertakeError as error:
            self._error = error
        with self._lock:
            self._at_work -= 1
            is_last = self._at_work == 0
        if is_last:
            self._consumer.close()

    def _handle(self, delivery: Delivery) -> None:
        failed: Exception | None = None
        try:
            with scope_of(delivery.priority):
                reply = reply_of(self._handler(delivery), delivery)
                if reply is not None:
                    _answer(delivery, reply)
        except Exception as error:
            failed = error
        ending = ending_of(failed, delivery)
        delivery.settle(ending)


def _answer(delivery: Delivery, reply: bytes | str) -> None:
    try:
        delivery.reply(reply)
    except Unroutable:
        log.info("nobody waits for an answer of %s any more", delivery.queue)
