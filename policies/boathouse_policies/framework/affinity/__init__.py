"""Constraints on where other pods are: pod affinity and anti-affinity, and topology spread."""

from boathouse_policies.framework.affinity.judges import CycleCounts, Judge, Rules, rules_of
from boathouse_policies.framework.affinity.tallies import OTHER_VALUE, Mention, Resident, Tallies, Tally

__all__ = ["OTHER_VALUE", "CycleCounts", "Judge", "Mention", "Resident", "Rules", "Tallies", "Tally", "rules_of"]
