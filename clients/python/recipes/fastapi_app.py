"""A FastAPI application: each request has a scope, and what it publishes is as urgent as the request.

uvicorn recipes.fastapi_app:app
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException, Request

from overtake import AsyncClient, NotConfirmed, Priority, processing_priority

QUEUE = os.environ.get("OVERTAKE_QUEUE", "orders")


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One client for the life of the application."""
    url = os.environ.get("OVERTAKE_AMQP_URL", "amqp://localhost")
    async with AsyncClient(url, http=os.environ.get("OVERTAKE_HTTP_URL"), name="shop") as client:
        await client.declare_queue(QUEUE, scheme="signed")
        app.state.client = client
        yield


async def in_scope(
    # Other services say here how urgent their request is, as messages do.
    x_processing_priority: Annotated[int | None, Header(ge=-(2**31), le=2**31 - 1)] = None,
) -> AsyncIterator[None]:
    """A request that says how urgent it is has a scope; another says nothing."""
    if x_processing_priority is None:
        yield
        return
    async with processing_priority(x_processing_priority):
        yield


def broker(request: Request) -> AsyncClient:
    """The client."""
    client: AsyncClient = request.app.state.client
    return client


app = FastAPI(lifespan=lifespan, dependencies=[Depends(in_scope)])


@app.post("/orders/{order}", status_code=202)
async def place(order: str, client: Annotated[AsyncClient, Depends(broker)]) -> None:
    """Accepted means durable."""
    try:
        await client.publish(QUEUE, order)
    except NotConfirmed as error:
        raise HTTPException(503, str(error)) from error


@app.post("/imports", status_code=202)
async def import_orders(orders: list[str], client: Annotated[AsyncClient, Depends(broker)]) -> int:
    """An import is BULK, whoever asks for it."""
    async with processing_priority(Priority.BULK):
        return await client.publish_all(QUEUE, orders)
