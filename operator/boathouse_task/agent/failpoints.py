"""Failpoints of the agent, for tests: `BOATHOUSE_AGENT_FAILPOINT`."""

from typing import Final

from boathouse_task.failpoints import Failpoints

AGENT: Final = Failpoints("BOATHOUSE_AGENT_FAILPOINT", ("file", "refresh-request", "report"))
"""`file`: the orders or an exclude file; at its start an agent writes the two exclude files."""
