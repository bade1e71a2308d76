"""The plain policies that every other is compared with."""

from boathouse_policies.baselines.orders import FairShare, Fifo
from boathouse_policies.baselines.placement import LeastLoaded, Packed

__all__ = ["FairShare", "Fifo", "LeastLoaded", "Packed"]
