"""The plain policies that every other is compared with."""

from boathouse_policies.baselines.orders import FairShare, Fifo, MemoryHeld
from boathouse_policies.baselines.placement import LEAST_LOADED, PACKED, Closest, fitting

__all__ = ["LEAST_LOADED", "PACKED", "Closest", "FairShare", "Fifo", "MemoryHeld", "fitting"]
