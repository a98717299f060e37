"""Streams of Redis and Valkey in which urgent work overtakes bulk work: `pip install overtake-client[streams]`.

A category has two lanes, each a stream of its own: `customer`, and `customer:backfill` for what is less urgent than a threshold. A
subscriber reads the first while there is anything in it; what fails is tried again in its own lane, and then goes to `customer:dlq` or
`customer:backfill:dlq`.

```python
from overtake.streams import Lanes, Subscriber

with Subscriber("redis://localhost", "customer", "mails", lanes=Lanes()) as subscriber:
    with subscriber.handle(lambda entry: print(entry.data)) as handling:
        handling.wait()
```
"""

from .aio import AsyncCategory, AsyncDeadLetters, AsyncStreamHandling, AsyncSubscriber
from .category import Lag
from .entry import Entry
from .lanes import Lane, Lanes
from .letters import DeadLetter
from .retry import Retry
from .subscriber import Category, DeadLetters, StreamHandling, Subscriber

__all__ = [
    "AsyncCategory",
    "AsyncDeadLetters",
    "AsyncStreamHandling",
    "AsyncSubscriber",
    "Category",
    "DeadLetter",
    "DeadLetters",
    "Entry",
    "Lag",
    "Lane",
    "Lanes",
    "Retry",
    "StreamHandling",
    "Subscriber",
]
