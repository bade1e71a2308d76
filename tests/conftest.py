"""What all tests share."""

import asyncio

import hypothesis

# pytest-asyncio looks for a current event loop and thereby makes one, which nobody closes: a ResourceWarning at some
# later garbage collection. After this there is none to find.
asyncio.set_event_loop(None)

# How long an example takes depends on what else the machine does, so no test judges it.
hypothesis.settings.register_profile("boathouse", deadline=None)
hypothesis.settings.load_profile("boathouse")
