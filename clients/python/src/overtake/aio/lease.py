"""Leases of the asyncio client, over HTTP: each is extended by itself until it is settled."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType
from typing import Any, Self

from .. import rest
from ..durations import Duration, milliseconds
from ..errors import LeaseOver, OvertakeError, Refused
from ..handling import Reject, log
from ..leased import Keeping, Leased
from ..priority import scope_of
from .http import Http

__all__ = ["AsyncLease"]


class AsyncLease(Leased):
    """A message, lent. `async with` runs its body in the message's scope, acks it at the end, and nacks it on an exception.

    An exception goes on after the nack; `Reject` rejects, and goes on, too.
    """

    __slots__ = ("_http", "_keeper", "_scope")

    def __init__(self, http: Http, keeper: Keeper, queue: str, lease_ms: int, answer: dict[str, Any]) -> None:
        super().__init__(queue, lease_ms, answer)
        self._http = http
        self._keeper = keeper
        self._scope: contextlib.AbstractContextManager[None] | None = None

    async def ack(self) -> None:
        """The work is done: the message is settled."""
        await self._settle("ack")

    async def nack(self, delay_ms: Duration | None = None) -> None:
        """The work failed: it is put back after `delay_ms`, else after the queue's backoff. A number is in milliseconds."""
        await self._settle("nack", milliseconds(delay_ms, "delay_ms"))

    async def reject(self) -> None:
        """It will never do: it is dead-lettered."""
        await self._settle("reject")

    async def release(self) -> None:
        """Nothing was done: it is put back at once, and that is no failure."""
        await self._settle("release")

    async def extend(self, lease_ms: Duration) -> None:
        """The lease ends so much after now, and after each further extension. A number is in milliseconds."""
        length_ms = milliseconds(lease_ms, "lease_ms")
        self.check_held()
        try:
            await self._http.ask(rest.extend(self.queue, [self.receipt], length_ms))
        except LeaseOver:
            self.is_over = True
            self._keeper.drop(self)
            raise
        self.lease_ms = length_ms
        self._keeper.drop(self)
        self._keeper.hold([self])

    async def _settle(self, how: str, delay_ms: int | None = None) -> None:
        self.check_held()
        try:
            await self._http.ask(rest.settle(self.queue, self.receipt, how, delay_ms))
        except LeaseOver:
            self.is_over = True
            self._keeper.drop(self)
            raise
        self.is_settled = True
        self._keeper.drop(self)

    async def __aenter__(self) -> Self:
        self._scope = scope_of(self.priority)
        self._scope.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._scope is not None
        self._scope.__exit__(None, None, None)
        if self.is_settled:
            return
        try:
            if error is None:
                await self.ack()
                return
            try:
                await self._settle("reject" if isinstance(error, Reject) else "nack")
            except OvertakeError as unsettled:
                log.warning("a lease of %s ends by itself, since it could not be put back: %s", self.queue, unsettled)
        finally:
            # Settled or not, nobody works on it any more.
            self._keeper.drop(self)


class Keeper:
    """Extends what is held: one task, from the first lease on."""

    def __init__(self, http: Http) -> None:
        self._http = http
        self._keeping: Keeping[AsyncLease] = Keeping()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def hold(self, leases: list[AsyncLease]) -> None:
        """These are held from now on."""
        self._keeping.hold(leases, asyncio.get_running_loop().time())
        if self._task is None and leases:
            self._task = asyncio.create_task(self._run(), name="overtake leases")
        self._changed.set()

    def drop(self, lease: AsyncLease) -> None:
        """This one is not any more."""
        self._keeping.drop(lease)

    async def close(self) -> None:
        """Extends nothing more: what is held ends by itself."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._changed.clear()
            for leases in self._keeping.due(loop.time()):
                await self._extend(leases)
                del leases  # Who waits here for the next ones must not hold these.
            at = self._keeping.next()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(at):
                    await self._changed.wait()

    async def _extend(self, leases: list[AsyncLease]) -> None:
        first = leases[0]
        try:
            answer = await self._http.ask(rest.extend(first.queue, [lease.receipt for lease in leases], first.lease_ms))
        except Refused as error:
            for lease in leases:
                self._keeping.hear_no(lease, str(error.code))
        except OvertakeError as error:
            # Another attempt comes before they end.
            log.warning("leases of %s were not extended: %s", first.queue, error)
        else:
            self._keeping.hear(leases, answer)
