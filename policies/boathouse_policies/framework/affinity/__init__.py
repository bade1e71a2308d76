"""Constraints on where other pods are: pod affinity and anti-affinity, and topology spread."""

from boathouse_policies.framework.affinity.filters import AFFINITY, PodAffinity, TopologySpread
from boathouse_policies.framework.affinity.judges import CycleCounts
from boathouse_policies.framework.affinity.tallies import Resident, Tallies, Tally

__all__ = ["AFFINITY", "CycleCounts", "PodAffinity", "Resident", "Tallies", "Tally", "TopologySpread"]
