"""Overtake from Python: a priority scope, and a broker behind it.

```python
from overtake import Client, Priority, processing_priority

with Client("amqp://localhost") as client:
    with processing_priority(Priority.LOW):
        client.publish("customers", b"...")  # LOW
```

`Client` is plain, `AsyncClient` is for asyncio; both say the same things with the same words.
"""

from .aio.client import AsyncClient
from .aio.consumer import AsyncConsumer, AsyncDelivery
from .aio.handler import AsyncHandling
from .aio.lease import AsyncLease
from .client import Client
from .consumer import Consumer, Delivery
from .errors import (
    Closed,
    ConnectionLost,
    LeaseOver,
    LoginRefused,
    NotConfirmed,
    OvertakeError,
    Refused,
    TimedOut,
    Unroutable,
)
from .handler import Handling
from .handling import Reject
from .lease import Lease
from .message import Message
from .priority import Priority, current_priority, processing_priority

__all__ = [
    "AsyncClient",
    "AsyncConsumer",
    "AsyncDelivery",
    "AsyncHandling",
    "AsyncLease",
    "Client",
    "Closed",
    "ConnectionLost",
    "Consumer",
    "Delivery",
    "Handling",
    "Lease",
    "LeaseOver",
    "LoginRefused",
    "Message",
    "NotConfirmed",
    "OvertakeError",
    "Priority",
    "Refused",
    "Reject",
    "TimedOut",
    "Unroutable",
    "current_priority",
    "processing_priority",
]
