"""Why claims do not hold, as was found by varying what was assumed."""

from __future__ import annotations

from typing import Final

from boathouse_lab.reproduce.ila import schedulers

_FLAT = (
    "the truth is flat until it is not, an exponential is never: trained on all loads, the model predicts 1.3 "
    "to 1.5 for the third I/O-bound map of a host, which is not slowed down at all"
)
_SEEN_AT_ONCE = "here a job sees all free nodes at once, not the one whose heartbeat comes"
_HELD = "schedules of these 25 jobs differ much, and a job that comes late finds the hosts' disks taken by large ones"
JOB_TIMES: Final = (
    f"{_HELD}. A scheduler that is told how many maps a host takes unslowed has 1.8 over PureFair where ILA has 1.4 "
    f"(8 schedules), so what is missing is the model's: {_FLAT}"
)
LEAST: Final = (
    "told the truth, a scheduler has types below 1 as well (Kmean(1), RWrite(40): 0.8 to 0.9): a job that "
    "starts on an idle cluster gains nothing, and a large I/O-bound job waits for disks where others put it "
    "beside anything"
)
LARGEST: Final = f"it is one type under one scheduler; {_HELD}"
IAO: Final = (
    "distance costs little where disks are the bottleneck: a map that reads from another host uses the "
    "network and spares the contended disk. Without interference (Figure 10's load) greedy jobs take 1.2 "
    "times as long as LASM's"
)
THROUGHPUT: Final = (
    "a scheduler that is told the truth gains 1.3 times, ILA 1.1 (8 schedules): the stream mixes I/O- and CPU-bound "
    "jobs, so oblivious schedulers, too, put much on one host that does not collide. Where it does (Figure 9, full "
    "form) ILA gains 1.9 times"
)
THROUGHPUT_IAO: Final = IAO
LOCAL: Final = "one or two maps of the small TeraSort jobs decide"
LOCAL_GAIN: Final = (
    "greedy is at two thirds: with three replicas a large job has a block on most free nodes. With two "
    "replicas the gain is 100 %, with one 137 % (one schedule)"
)
LOCAL_DELAY: Final = (
    f"Delay is at nine tenths: {_SEEN_AT_ONCE}, so 5 s are enough. With two replicas the gain is 27 %, with "
    "one 41 % (one schedule)"
)
LOCAL_CPU: Final = (
    f"{_SEEN_AT_ONCE}, and takes the closest; with three replicas on 12 hosts a host with the block is nearly "
    "always free"
)
SMALL_GREEDY: Final = LOCAL
SLOWED: Final = (
    "hosts come to hold 8 CPU-bound and 2 I/O-bound maps, which ask for 8.2 of the 8 CPUs that cost nothing "
    "and are 1.1 to 1.3 times slower: a slowdown up to the model's own error above the threshold is accepted, "
    "and the dynamic one accepts more where slots are idle"
)
IAO_TASKS: Final = "as under ILA, whose model it shares"
OBLIVIOUS_CALM: Final = (
    "idle hosts at the stream's begin and end are part of it: one schedule gives 25 %, the same jobs in 150 instead of "
    "253 s 18 %, in 400 s 23 %; the rest is the truth, whose strength was set by both ends of this curve"
)
OBLIVIOUS_SLOW: Final = OBLIVIOUS_CALM
OBLIVIOUS_VERY: Final = (
    "with a truth in which each further stream costs 50 % of a disk instead of 30 %, 10 % of PureFair's maps "
    "are more than 10 times slower, as in the paper, but 38 % are then not slowed at all"
)
SPREAD: Final = (
    "the first comes to an idle cluster: 42 s, the other two, 30 and 60 s later, 65 and 61 s (one seed). Experiment: "
    "where all six come at once, Matrix jobs lie 2 to 6 % apart, TeraGen jobs 1 % (two seeds)"
)
GREEDY_GREP: Final = (
    "with three replicas a job of 350 blocks has some on every node. With one greedy has 70 % of MGrep's and "
    "40 % of MPiEst's maps local, with two 85 and 56 %"
)
DELAY_GREP: Final = "with one replica Delay has 90 %, the paper's value; with three more"
DELAY_PI: Final = "a matter of the number of replicas: with one 91 %, with two 98 %"
CALM_PI: Final = f"{_SEEN_AT_ONCE}: with one replica LAO has 68 % of them local, with two 87 %"
_NEARER = (
    "greedy has 92 % of MGrep's maps local here and 58 % there, Delay 98 and 90 %, so there is less to gain "
    "(full form, one schedule); in the quick form ILA also holds slots back until its model has learnt that "
    "these tasks hinder nobody: LASM alone is in the assumption"
)
DYNAMIC: Final = (
    "with all maps (full form) it is the best for each load; with the fewer maps of the quick form the 20 s "
    "of idle slots until it is used weigh more"
)
STATIC: Final = (
    "with all maps (full form) it is 93, 74 and 98 % for one seed; with the fewer maps of the quick form the "
    "20 s until the dynamic threshold is used weigh more"
)
NONE: Final = (
    "the worst static threshold here is so high that it refuses next to nothing, which is as none; or it is H "
    f"= 1: {_FLAT}"
)
FIRST_CPU: Final = (
    "a slowdown up to the model's own error above H is accepted here; without that margin H = 1 loses 43 %, "
    "the paper's value (one seed, half the maps)"
)
FIRST_MIX: Final = (
    f"{_FLAT}; without the margin for the model's error it is 0.31 instead of 0.69 (one seed, half the maps)"
)
_FORM = (
    "it is the truth's form: flat until a host is full, which no exponential is. Experiment (100 jobs, one seed): with "
    "a truth that is exponential R² is .69, .89 and .97 (I/O-bound, CPU-bound, overall) and the mean error 5 %"
)
R2: Final = (
    f"{_FORM}; CPU-bound maps vary little beside the spread of run times (by 0.5 about a slowdown of 1.3): without "
    "that spread they have .70"
)
ERROR: Final = f"{_FORM}; without the spread of run times 16 % for I/O-bound and 17 % for CPU-bound maps"
_FIRST_COME = (
    "Capacity serves its two queues first come, first served, which suits jobs that all come at once; against "
    "PureFair and LATE it is 2.35 for one seed, and seeds differ"
)
ISOLATED: Final = {
    "Matrix": _FIRST_COME,
    "TeraGen": _FIRST_COME,
}
CALM_TIMES: Final = {
    (schedulers.PURE_FAIR, "MGrep"): _NEARER,
    (schedulers.DELAY, "MGrep"): _NEARER,
    (schedulers.DELAY, "MPiEst"): _NEARER,
}
FAMILIES: Final = {
    "linear": (
        "overall, most of the variance lies between I/O- and CPU-bound maps (mean slowdowns 6.0 and 1.3), which a line "
        "has too: it has .74 of all, .64 of I/O-bound and less than none of CPU-bound maps (one seed, 100 jobs)"
    ),
    "quadratic": (
        "by construction: the truth of disks is a product of load and streams, a quadratic until its ceiling; "
        "the paper's hosts were nearer to an exponential"
    ),
}
