"""What was leased over HTTP, read the same way by both clients; and when which lease is to be extended."""

from __future__ import annotations

import base64
import weakref
from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from .content import Content
from .errors import LeaseOver
from .wire import FIELDS

__all__ = ["Leased"]

#: A lease is extended when so much of it is over: two attempts more fit in before it ends.
PART_BEFORE_EXTENDING = 3


class Leased(Content):
    """A message as it was leased, and whether it still is."""

    __slots__ = (
        "__weakref__",
        "_answer",
        "body",
        "cancel_asked",
        "is_over",
        "is_settled",
        "lease_ms",
        "queue",
        "receipt",
    )

    def __init__(self, queue: str, lease_ms: int, answer: dict[str, Any]) -> None:
        self.queue = queue
        """Whence it came."""
        self.lease_ms = lease_ms
        """How long the lease lasts from each extension, ms; 0: it does not end by itself."""
        self.receipt: str = answer["receipt"]
        """What shows the broker that it is ours."""
        self.is_settled = False
        """Whether it was settled here."""
        self.is_over = False
        """Whether the broker said that the lease is over: end the work, somebody else may have the message."""
        self.cancel_asked = bool(answer.get("cancel_asked"))
        """Whether somebody wants the message back: end the work, and settle."""
        text = answer.get("body")
        self.body: bytes = text.encode() if text is not None else base64.b64decode(answer.get("body_base64") or "")
        """The content."""
        self._answer = answer

    @property
    def priority(self) -> int | None:
        """What it was published with, or reprioritised to since; None if it says nothing."""
        return self._answer.get("given_priority")

    @property
    def headers(self) -> dict[str, Any]:
        """What travels beside the body, without what are fields here."""
        return {name: value for name, value in self._answer["headers"].items() if name not in FIELDS}

    @property
    def id(self) -> str:
        """The name that its publisher gave it, else the one that the broker did."""
        return str(self._answer["id"])

    @property
    def key(self) -> str | None:
        """What it is about."""
        return self._answer.get("key")

    @property
    def key_weight(self) -> int | None:
        """The weight that its publisher gave its key."""
        return self._answer.get("key_weight")

    @property
    def count(self) -> int:
        """How often it was given out, this time included."""
        return int(self._answer["delivery_count"])

    @property
    def redelivered(self) -> bool:
        """Whether it may have been in somebody's hands before."""
        return bool(self._answer["redelivered"])

    @property
    def content_type(self) -> str | None:
        """The media type of the body."""
        return self._answer.get("content_type")

    @property
    def correlation_id(self) -> str | None:
        """Which question it is."""
        return (self._answer.get("properties") or {}).get("correlation_id")

    @property
    def reply_to(self) -> str | None:
        """The queue for answers."""
        return (self._answer.get("properties") or {}).get("reply_to")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.queue}, priority {self.priority}, {len(self.body)} bytes>"

    def check_held(self) -> None:
        """It is neither settled nor lost."""
        if self.is_settled or self.is_over:
            raise LeaseOver(
                "stale-receipt",
                "the lease is over",
                "somebody else may have the message; lease the next, and settle in time",
            )


L = TypeVar("L", bound=Leased)


class Keeping(Generic[L]):
    """Which leases are held, and when each is to be extended. Time is handed in, in seconds.

    A lease that its program has lost sight of, such as one whose thread has ended, is not held: it ends by itself.
    """

    def __init__(self) -> None:
        self._due: dict[str, tuple[float, weakref.ref[L]]] = {}

    def hold(self, leases: Iterable[L], now: float) -> None:
        """These are held from now on."""
        for lease in leases:
            if lease.lease_ms:
                self._due[lease.receipt] = (now + lease.lease_ms / 1000 / PART_BEFORE_EXTENDING, weakref.ref(lease))

    def drop(self, lease: L) -> None:
        """This one is not any more."""
        self._due.pop(lease.receipt, None)

    def next(self) -> float | None:
        """When there is something to do."""
        return min((at for at, _ in self._due.values()), default=None)

    def due(self, now: float) -> list[list[L]]:
        """What is to be extended: those of one queue and one length together. They are held on."""
        groups: dict[tuple[str, int], list[L]] = {}
        for receipt, (at, ref) in list(self._due.items()):
            lease = ref()
            if lease is None:
                del self._due[receipt]
            elif at <= now:
                groups.setdefault((lease.queue, lease.lease_ms), []).append(lease)
        for leases in groups.values():
            self.hold(leases, now)
        return list(groups.values())

    def hear(self, leases: list[L], answer: dict[str, Any]) -> None:
        """What became of them."""
        for lease, result in zip(leases, answer["results"], strict=True):
            if not result["ok"]:
                self.hear_no(lease, str(result.get("code")))

    def hear_no(self, lease: L, code: str) -> None:
        """This one was not extended."""
        self.drop(lease)
        if code == "cancel-asked":
            lease.cancel_asked = True
        else:
            lease.is_over = True
