"""Leases of the plain client, over HTTP: each is extended by itself until it is settled."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from . import rest
from .durations import Duration, milliseconds
from .errors import LeaseOver, OvertakeError, Refused
from .handling import Reject, log
from .http import Http
from .leased import Keeping, Leased
from .priority import scope_of

__all__ = ["Lease"]


class Lease(Leased):
    """A message, lent. `with` runs its body in the message's scope, acks it at the end, and nacks it on an exception.

    An exception goes on after the nack; `Reject` rejects, and goes on, too. Any thread may settle it.
    """

    __slots__ = ("_http", "_keeper", "_scope")

    def __init__(self, http: Http, keeper: Keeper, queue: str, lease_ms: int, answer: dict[str, Any]) -> None:
        super().__init__(queue, lease_ms, answer)
        self._http = http
        self._keeper = keeper
        self._scope: contextlib.AbstractContextManager[None] | None = None

    def ack(self) -> None:
        """The work is done: the message is settled."""
        self._settle("ack")

    def nack(self, delay_ms: Duration | None = None) -> None:
        """The work failed: it is put back after `delay_ms`, else after the queue's backoff. A number is in milliseconds."""
        self._settle("nack", milliseconds(delay_ms, "delay_ms"))

    def reject(self) -> None:
        """It will never do: it is dead-lettered."""
        self._settle("reject")

    def release(self) -> None:
        """Nothing was done: it is put back at once, and that is no failure."""
        self._settle("release")

    def extend(self, lease_ms: Duration) -> None:
        """The lease ends so much after now, and after each further extension. A number is in milliseconds."""
        length_ms = milliseconds(lease_ms, "lease_ms")
        self.check_held()
        try:
            self._http.ask(rest.extend(self.queue, [self.receipt], length_ms))
        except LeaseOver:
            self.is_over = True
            self._keeper.drop(self)
            raise
        self.lease_ms = length_ms
        self._keeper.drop(self)
        self._keeper.hold([self])

    def _settle(self, how: str, delay_ms: int | None = None) -> None:
        self.check_held()
        try:
            self._http.ask(rest.settle(self.queue, self.receipt, how, delay_ms))
        except LeaseOver:
            self.is_over = True
            self._keeper.drop(self)
            raise
        self.is_settled = True
        self._keeper.drop(self)

    def __enter__(self) -> Self:
        self._scope = scope_of(self.priority)
        self._scope.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._scope is not None
        self._scope.__exit__(None, None, None)
        if self.is_settled:
            return
        try:
            if error is None:
                self.ack()
                return
            try:
                self._settle("reject" if isinstance(error, Reject) else "nack")
            except OvertakeError as unsettled:
                log.warning("a lease of %s ends by itself, since it could not be put back: %s", self.queue, unsettled)
        finally:
            # Settled or not, nobody works on it any more.
            self._keeper.drop(self)


class Keeper:
    """Extends what is held: one thread, from the first lease on."""

    def __init__(self, http: Http, name: str) -> None:
        self._http = http
        self._name = name
        self._keeping: Keeping[Lease] = Keeping()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def hold(self, leases: list[Lease]) -> None:
        """These are held from now on."""
        with self._changed:
            self._keeping.hold(leases, time.monotonic())
            if self._thread is None and leases:
                self._thread = threading.Thread(target=self._run, name=f"{self._name} leases", daemon=True)
                self._thread.start()
            self._changed.notify()

    def drop(self, lease: Lease) -> None:
        """This one is not any more."""
        with self._changed:
            self._keeping.drop(lease)

    def close(self) -> None:
        """Extends nothing more: what is held ends by itself."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        for leases in self._due():
            self._extend(leases)
            del leases  # Who waits here for the next ones must not hold these.

    def _extend(self, leases: list[Lease]) -> None:
        try:
            answer = self._http.ask(
                rest.extend(leases[0].queue, [lease.receipt for lease in leases], leases[0].lease_ms)
            )
        except Refused as error:
            with self._changed:
                for lease in leases:
                    self._keeping.hear_no(lease, str(error.code))
        except OvertakeError as error:
            # Another attempt comes before they end.
            log.warning("leases of %s were not extended: %s", leases[0].queue, error)
        else:
            with self._changed:
                self._keeping.hear(leases, answer)

    def _due(self) -> Iterator[list[Lease]]:
        while True:
            with self._changed:
                if self._is_closed:
                    return
                now, at = time.monotonic(), self._keeping.next()
                due = self._keeping.due(now)
                if not due:
                    self._changed.wait(None if at is None else at - now)
            while due:
                yield due.pop()
