"""The plain policies that every other is compared with."""

from boathouse_policies.baselines.fair import FairShare
from boathouse_policies.baselines.fifo import Fifo
from boathouse_policies.baselines.placement import LeastLoaded, Packed

__all__ = ["FairShare", "Fifo", "LeastLoaded", "Packed"]
