"""What runs a policy: the ledger, the waiting room, the view, and `run_cycle`, which both shells drive."""

from boathouse_policies.framework.accounts import Account, Freed, State
from boathouse_policies.framework.classes import Waiting
from boathouse_policies.framework.closeness import Closeness
from boathouse_policies.framework.cycle import run_cycle
from boathouse_policies.framework.cycle_state import Scratch, Want
from boathouse_policies.framework.drift import Drift
from boathouse_policies.framework.extension import (
    Controller,
    Filter,
    Gang,
    Hooks,
    JobOrder,
    Observer,
    Patience,
    Reserve,
    Score,
    Sizer,
)
from boathouse_policies.framework.layout import Layout
from boathouse_policies.framework.ledger import Ledger
from boathouse_policies.framework.plan import Left, Plan
from boathouse_policies.framework.policy import Profile
from boathouse_policies.framework.predicates import PREDICATES
from boathouse_policies.framework.running import Follower, RunningTask, RunningTasks
from boathouse_policies.framework.shapes import Sized
from boathouse_policies.framework.topology import ALL, Groups, Topology, Where
from boathouse_policies.framework.view import ClusterView
from boathouse_policies.framework.waiting import WaitingRoom

__all__ = [
    "ALL",
    "PREDICATES",
    "Account",
    "Closeness",
    "ClusterView",
    "Controller",
    "Drift",
    "Filter",
    "Follower",
    "Freed",
    "Gang",
    "Groups",
    "Hooks",
    "JobOrder",
    "Layout",
    "Ledger",
    "Left",
    "Observer",
    "Patience",
    "Plan",
    "Profile",
    "Reserve",
    "RunningTask",
    "RunningTasks",
    "Score",
    "Scratch",
    "Sized",
    "Sizer",
    "State",
    "Topology",
    "Waiting",
    "WaitingRoom",
    "Want",
    "Where",
    "run_cycle",
]
