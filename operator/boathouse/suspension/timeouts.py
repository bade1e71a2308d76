"""Every time limit of a suspension, and which other ones it follows from.

    order ----ORDERED_WITHIN_S----> a poll takes it ----ACKNOWLEDGED_WITHIN_S----> the task has paused
                                                                                        |
        SHRUNK_WITHIN_S: the last request that shrinks its pod has ended <--------------+
        LAPSES_S: the task, whose CPU limit was not lowered, continues by itself <------+

The operator stops shrinking well before the task stops waiting for it: a pod that shrinks after its task continued
would run it with 10m of CPU until the keeper sees that.
"""

from boathouse_task import contract

ORDERED_WITHIN_S = 5.0
"""A task that does not poll within this time after an order to it was given does not get the order."""
_ON_THE_WAY_S = 1.0
ACKNOWLEDGED_WITHIN_S = contract.STOPS_WITHIN_S + contract.ACKNOWLEDGES_WITHIN_S + _ON_THE_WAY_S
"""Time from the poll to the acknowledgement: the task's threads stop, and it sends its answer."""
LAPSES_S = contract.SHRINKS_WITHIN_S
"""A task that does not see its CPU shrink within this time of its acknowledgement continues by itself."""
SHRUNK_WITHIN_S = LAPSES_S - 4.0
"""Time from the acknowledgement to the end of the writes: record and shrink. The kubelet has the rest."""
DEFERRED_S = 2.0
"""How long a node may defer a growth before the request is taken back, so that it keeps no room from others."""
DEFERRED_RETRY_S = 30.0
"""When a growth that its node deferred is tried again."""
SUBMITTED_S = 10.0
"""How long the job of a task without a record may take to be submitted after the task was seen."""
BACKOFF_S = (1.0, 2.0, 5.0, 10.0, 30.0)
"""When a refused write is repeated, by refusals in a row."""
BY_HAND_EVERY_S = 0.5
"""How often the tasks are looked for that their author suspends."""
BY_HAND_RETRY_S = 5.0
"""When a task that could not be suspended for its author is asked again."""
LIMIT_RANGE_S = 600.0
"""How long a namespace is left alone in which the API server refused to shrink a task: LimitRanges are not watched."""
