"""The plain policies that every other is compared with."""

from boathouse_policies.baselines.plain import LEAST_LOADED, PACKED, Closest, FairShare, Fifo, MemoryHeld, fitting
