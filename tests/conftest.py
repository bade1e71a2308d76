"""What all tests share."""

import asyncio

# pytest-asyncio looks for a current event loop and thereby makes one, which nobody closes: a ResourceWarning at some
# later garbage collection. After this there is none to find.
asyncio.set_event_loop(None)
