"""Decides for all clients how a message is settled when its handler ends, and how a handling says why it ended.

| the handler | then |
|---|---|
| returns | ack; bytes or str go to whoever asked |
| raises `Reject` | reject: dead-lettered |
| raises any other `Exception`, or is cancelled | nack: put back, and logged |
| raises `SystemExit`, `KeyboardInterrupt` or another `BaseException` | nack: put back; the handling ends, and raises it |
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Iterable
from enum import Enum
from typing import Any

from .delivery import Received
from .errors import Closed

__all__ = ["Reject"]

log = logging.getLogger("overtake")


class Reject(Exception):
    """Raised by a handler: this message will never do, dead-letter it."""


class Ending(Enum):
    """How the work on a message ended."""

    ACK = "ack"
    NACK = "nack"
    REJECT = "reject"


def is_fatal(error: BaseException | None) -> bool:
    """Whether a handler that raises it wants more to end than the work on one message."""
    return error is not None and not isinstance(error, Exception | asyncio.CancelledError)


def ending_of(error: BaseException | None, delivery: Received) -> Ending:
    """Decides how a message is settled. A failure is logged here, unless it ends the handling, which `End` logs."""
    if error is None:
        return Ending.ACK
    if isinstance(error, Reject):
        log.info("a message of %s is rejected by its handler: %s", delivery.queue, error)
        return Ending.REJECT
    if not is_fatal(error):
        log_failure(f"the handler of {delivery.queue} failed, its message is put back", error)
    return Ending.NACK


def log_failure(what: str, error: BaseException) -> None:
    """Logs one line at ERROR, with the reason in the line and the traceback below it."""
    log.error("%s: %s", what, reason(error), exc_info=error)


def reason(error: BaseException) -> str:
    """Why work failed, for people."""
    return str(error) if isinstance(error, Reject) else f"{type(error).__name__}: {error}".removesuffix(": ")


def reply_of(result: Any, delivery: Received) -> bytes | str | None:
    """What is to be sent to whoever asked, if anybody did."""
    return result if delivery.reply_to is not None and isinstance(result, bytes | str) else None


def join_all(threads: Iterable[threading.Thread], timeout: float | None) -> None:
    """Waits until all have ended, or for so many seconds."""
    until = None if timeout is None else time.monotonic() + timeout
    for thread in threads:
        thread.join(None if until is None else max(until - time.monotonic(), 0))


class End:
    """Why a handling has ended by itself: logged once at ERROR, and raised when its scope is left.

    Any thread may say so; the first reason counts.
    """

    def __init__(self, of: str) -> None:
        self._of = of
        self._lock = threading.Lock()
        self._error: BaseException | None = None
        self._is_raised = False

    def note(self, error: BaseException) -> None:
        """The handling ends for this reason."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error
        if isinstance(error, Closed):
            log.info("the handling of %s has ended: %s", self._of, error)
        else:
            log_failure(f"the handling of {self._of} has ended", error)

    def check(self) -> None:
        """Raises the reason, if there is one."""
        if self._error is not None:
            self._is_raised = True
            raise self._error

    def leave(self, error: BaseException | None, besides: BaseException | None = None) -> None:
        """The scope is left, with this exception on its way: raises the reason, unless that one goes before it or `check` has raised it.

        A client that its own program closed is no reason to raise. `besides` is what a handling lacks that goes on.
        """
        if error is not None or self._is_raised:
            return
        if not isinstance(self._error, Closed):
            self.check()
        if besides is not None:
            raise besides
