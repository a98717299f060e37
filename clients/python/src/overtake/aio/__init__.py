"""The same for asyncio, on aio-pika."""
