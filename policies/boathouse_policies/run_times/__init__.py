"""Run times of recurring programs, learned from tasks that succeeded.

A kind of job that tells a `Learner` of its tasks gets estimates for the classes of later jobs of the same program. The
kind decides which jobs run the same program; `Stage.program` names it.
"""

from boathouse_policies.run_times.fit import NAMESPACE_KEPT, PROGRAMS_KEPT, Runs
from boathouse_policies.run_times.learner import Learner, MemoryUse, Stage
