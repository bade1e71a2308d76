"""Waiting for a condition, which is what tests do instead of sleeping."""

import functools

from boathouse_e2e import waiting

# All happens in this process, within milliseconds; the patience ends before pytest's for a whole test.
eventually = functools.partial(waiting.eventually, within_s=60.0, every_s=0.002)
