"""HTTP of the asyncio client: one pool of connections, kept alive."""

from __future__ import annotations

import ssl
from typing import Any

import httpx2

from ..address import Address
from ..errors import not_there, timed_out
from ..http import MARGIN_S
from ..rest import Call, problem


class Http:
    """Asks the broker over HTTP."""

    def __init__(self, address: Address, tls: ssl.SSLContext | None, timeout: float | None, *, external: bool) -> None:
        self._address = address
        self._timeout = timeout
        self._client = httpx2.AsyncClient(
            base_url=address.http,
            # Who shows a certificate needs no password.
            auth=None if external else httpx2.BasicAuth(address.user, address.password),
            params={"vhost": address.vhost},
            timeout=timeout,
            verify=tls if tls is not None else True,
        )

    async def ask(self, call: Call, wait_s: float = 0.0) -> Any:
        """The answer as JSON; what the broker refuses is raised."""
        timeout = None if self._timeout is None else max(self._timeout, wait_s + MARGIN_S)
        try:
            response = await self._client.request(call.method, call.path, json=call.body, timeout=timeout)
        except httpx2.ConnectTimeout as error:
            raise not_there(self._address.http, "no connection in time") from error
        except httpx2.TimeoutException as error:
            raise timed_out(f"{call.method} {call.path}", timeout or 0) from error
        except httpx2.TransportError as error:
            raise not_there(self._address.http, error) from error
        try:
            answer = response.json() if "json" in response.headers.get("content-type", "") else None
        except ValueError as error:
            # A proxy may answer in the broker's place.
            raise not_there(self._address.http, f"the answer is no JSON: {error}") from error
        if response.is_error:
            raise problem(response.status_code, answer, self._address.user)
        return answer

    async def close(self) -> None:
        """Closes its connections."""
        await self._client.aclose()
