"""Requests of the broker's HTTP, and what their answers mean; nothing here opens a socket."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from . import durations
from .errors import LeaseOver, LoginRefused, OvertakeError, Refused

#: A lease that is asked for may be waited for so long, ms; who waits longer asks again.
WAIT_MS_MAX = 60_000

#: Codes of what is not there.
NOT_THERE = frozenset({"no-such-queue", "no-such-exchange"})

#: The lease itself is over, or somebody else has it.
_OVER = 409


@dataclass(frozen=True, slots=True)
class Call:
    """One request."""

    method: str
    path: str
    body: dict[str, Any] | None = None


def name(text: str) -> str:
    """A name in a path."""
    return quote(text, safe="")


def queue_settings(queue: str, settings: dict[str, Any]) -> Call:
    """Makes a queue, or compares the settings of the one that is there."""
    return Call("PUT", f"/v1/queues/{name(queue)}", durations.settings(settings))


def queue(queue: str) -> Call:
    """A queue as it is."""
    return Call("GET", f"/v1/queues/{name(queue)}")


def delete_queue(queue: str) -> Call:
    """Deletes a queue, and what is in it."""
    return Call("DELETE", f"/v1/queues/{name(queue)}")


def exchange_settings(exchange: str, kind: str, settings: dict[str, Any]) -> Call:
    """Makes an exchange."""
    return Call("PUT", f"/v1/exchanges/{name(exchange)}", {"kind": kind, **durations.settings(settings)})


def exchange(exchange: str) -> Call:
    """An exchange as it is."""
    return Call("GET", f"/v1/exchanges/{name(exchange)}")


def delete_exchange(exchange: str) -> Call:
    """Deletes an exchange, and its bindings."""
    return Call("DELETE", f"/v1/exchanges/{name(exchange)}")


def binding(queue: str, exchange: str, routing_key: str, headers: dict[str, Any] | None, match: str | None) -> Call:
    """Binds a queue; nothing changes if it is bound so."""
    body: dict[str, Any] = {"queue": queue, "routing_key": routing_key}
    if headers is not None:
        body["headers"] = headers
    if match is not None:
        body["match"] = match
    return Call("POST", f"/v1/exchanges/{name(exchange)}/bindings", body)


def leases(queue: str, most: int, wait_ms: int, lease_ms: int, worker: str) -> Call:
    """Leases messages."""
    body = {"max": most, "wait_ms": min(wait_ms, WAIT_MS_MAX), "visibility_timeout_ms": lease_ms, "worker": worker}
    return Call("POST", f"/v1/queues/{name(queue)}/leases", body)


def settle(queue: str, receipt: str, how: str, delay_ms: int | None = None) -> Call:
    """Ends a lease."""
    body: dict[str, Any] = {"receipts": [receipt], "how": how}
    if delay_ms is not None:
        body["delay_ms"] = delay_ms
    return Call("POST", f"/v1/queues/{name(queue)}/settle", body)


def extend(queue: str, receipts: list[str], lease_ms: int) -> Call:
    """Lengthens leases, from now on."""
    return Call("POST", f"/v1/queues/{name(queue)}/extend", {"receipts": receipts, "visibility_timeout_ms": lease_ms})


def problem(status: int, answer: Any, user: str) -> OvertakeError:
    """What an answer from 400 on means."""
    said = answer if isinstance(answer, dict) else {}
    text = str(said.get("detail") or said.get("title") or f"HTTP status {status}")
    code, hint = str(said.get("code") or status), str(said.get("hint") or "")
    if status == 401:
        return LoginRefused(f"the broker does not let {user} in over HTTP: check user and password ({text})")
    kind = LeaseOver if status == _OVER and code in _OVER_CODES else Refused
    return kind(code, text, hint)


_OVER_CODES = frozenset({"stale-receipt"})
