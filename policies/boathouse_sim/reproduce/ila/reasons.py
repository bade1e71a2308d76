"""Why claims do not hold, as was found by varying what was assumed; `likely` marks what was not varied by itself."""

from __future__ import annotations

from typing import Final

from boathouse_sim.reproduce.ila import schedulers

JOB_TIMES: Final = ""
LEAST: Final = ""
LARGEST: Final = ""
IAO: Final = ""
THROUGHPUT: Final = ""
THROUGHPUT_IAO: Final = ""
LOCAL: Final = ""
LOCAL_GAIN: Final = ""
LOCAL_DELAY: Final = ""
LOCAL_CPU: Final = ""
SMALL_GREEDY: Final = ""
SLOWED: Final = ""
IAO_TASKS: Final = ""
OBLIVIOUS_CALM: Final = ""
OBLIVIOUS_SLOW: Final = ""
OBLIVIOUS_VERY: Final = ""
ISOLATED: Final = {"Matrix": "", "TeraGen": ""}
SPREAD: Final = ""
GREEDY_GREP: Final = ""
DELAY_GREP: Final = ""
DELAY_PI: Final = ""
CALM_PI: Final = ""
CALM_TIMES: Final = {
    (schedulers.PURE_FAIR, "MGrep"): "",
    (schedulers.DELAY, "MGrep"): "",
    (schedulers.DELAY, "MPiEst"): "",
}
DYNAMIC: Final = ""
STATIC: Final = ""
NONE: Final = ""
FIRST_CPU: Final = ""
FIRST_MIX: Final = ""
R2: Final = ""
FAMILIES: Final = {"linear": "", "quadratic": ""}
ERROR: Final = ""
