"""Why claims do not hold, as was found by varying what was assumed; `likely` marks what was not varied by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boathouse_sim.reproduce.fspy_found import Groups

_HOLES = (
    "masters and uber jobs ask for 2 GB on one node, tasks for 1 GB: without reservations tasks fill every hole and "
    "the others wait"
)
TEN_TIMES = (
    f"the gain is mostly what Fair loses so: {_HOLES}; where Fair reserves nodes, or all containers are of 1 GB, it is "
    "small (see the assumptions)"
)
FORTY_SECONDS = "the RCP 6 here has segments with more work than the cluster does in their time, whose queues grow"
FAIR_BELOW_FORTY = (
    "Fair gives the next free room to a job that holds nothing: an uber job waits only for 2 GB on one node"
)
FIFTEEN = (
    "likely: an uber job takes 9 to 12 s alone, so waits of a few seconds, which Fair's holes add, show at 15 s already"
)
SIXTY_FOUR = f"under Fair, {_HOLES} for longer than 64 s"
_AHEAD = (
    "likely: jobs that finished virtually go first and take what comes free before a small newcomer, and the fair "
    "world, which loses nothing to waves, masters and holes, is ahead of the real one"
)
SLOWDOWN = f"{_AHEAD}; that nodes are reserved does not help (see the assumptions)"
SLOWDOWN_FAIR = FAIR_BELOW_FORTY
MAXIMUM = "likely: one job decides: the one that waited longest for room on one node"
MAXIMUM_FAIR = f"{_HOLES}; an uber job of 9 s that does so for minutes has a slowdown far above 10"
UNFAIR = f"{_AHEAD}; some seconds are much of a response of 10 s"
LATER = "likely: those that end later are among the larger jobs here"


def mode(groups: Groups) -> str:
    """Why the group of most segments is another."""
    counted = ", ".join(f"{one}: {groups.count(one)}" for one in groups.names)
    return (
        f"with 7 groups and 19 segments at 6 and above, no α from 0.2 to 6 makes 5 the largest ({counted}); "
        "the loads follow the tasks' model, which the paper does not state"
    )
