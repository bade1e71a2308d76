"""What runs a policy: the ledger, the scheduling queue, the view, and `run_cycle`, which both shells drive."""

from boathouse_policies.framework.affinity import OTHER_VALUE, Mention
from boathouse_policies.framework.cycle import Plan, run_cycle
from boathouse_policies.framework.cycle_state import Assignment, CycleState, PendingClass
from boathouse_policies.framework.diagnosis import ReservationAge
from boathouse_policies.framework.gathering import Gathering
from boathouse_policies.framework.layout import ALL, Groups, Layout, Where
from boathouse_policies.framework.ledger import Account, Drift, Freed, Ledger, State
from boathouse_policies.framework.predicates import PREDICATES
from boathouse_policies.framework.questions import (
    Controller,
    Figure,
    Figures,
    Filter,
    Hooks,
    JobOrder,
    Observer,
    Patience,
    Reserve,
    ReservedNode,
    Score,
    Sizer,
)
from boathouse_policies.framework.queue import Closeness, QueuedClass, SchedulingQueue
from boathouse_policies.framework.running import Follower, Pause, RunningTask, RunningTasks
from boathouse_policies.framework.scheduling_profile import Profile
from boathouse_policies.framework.shapes import Sized
from boathouse_policies.framework.view import ClusterView
