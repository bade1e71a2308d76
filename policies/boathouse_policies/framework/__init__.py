"""What runs a policy: the ledger, the waiting room, the view, and `run_cycle`, which both shells drive."""

from boathouse_policies.framework.accounts import Account, Freed, State
from boathouse_policies.framework.classes import Waiting
from boathouse_policies.framework.closeness import Closeness, Groups
from boathouse_policies.framework.cycle import run_cycle
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
    Sized,
    Sizer,
    Where,
)
from boathouse_policies.framework.layout import Layout, Topology
from boathouse_policies.framework.ledger import Ledger
from boathouse_policies.framework.plan import Left, Plan
from boathouse_policies.framework.policy import Profile
from boathouse_policies.framework.predicates import PREDICATES
from boathouse_policies.framework.scratch import Scratch
from boathouse_policies.framework.view import ClusterView
from boathouse_policies.framework.waiting import WaitingRoom
from boathouse_policies.framework.want import Want

__all__ = [
    "PREDICATES",
    "Account",
    "Closeness",
    "ClusterView",
    "Controller",
    "Drift",
    "Filter",
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
