"""What becomes of a message whose handler has ended, decided once for both clients.

| the handler | then |
|---|---|
| returns | ack; bytes or str go to whoever asked |
| raises `Reject` | reject: dead-lettered |
| raises anything else | nack: put back, and logged |
"""

from __future__ import annotations

import logging
from enum import Enum
from typing import Any

from .delivery import Received

__all__ = ["Reject"]

log = logging.getLogger("overtake")


class Reject(Exception):
    """Raised by a handler: this message will never do, dead-letter it."""


class Ending(Enum):
    """How the work on a message ended."""

    ACK = "ack"
    NACK = "nack"
    REJECT = "reject"


def ending_of(error: BaseException | None, delivery: Received) -> Ending:
    """What the handler's end means; what is not said to anybody is logged."""
    if error is None:
        return Ending.ACK
    if isinstance(error, Reject):
        log.info("a message of %s is rejected by its handler: %s", delivery.queue, error)
        return Ending.REJECT
    log.error("the handler of %s failed, its message is put back", delivery.queue, exc_info=error)
    return Ending.NACK


def reply_of(result: Any, delivery: Received) -> bytes | str | None:
    """What is to be sent to whoever asked, if anybody did."""
    return result if delivery.reply_to is not None and isinstance(result, bytes | str) else None
