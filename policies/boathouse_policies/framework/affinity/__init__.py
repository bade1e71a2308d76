"""Constraints on where other pods are, as counts of pods: pod affinity and anti-affinity, and topology spread."""

from boathouse_policies.framework.affinity.rules import Rules, Spread, Sum, rules_of
from boathouse_policies.framework.affinity.tallies import OTHER_VALUE, Mention, Resident, Tallies, Tally

__all__ = ["OTHER_VALUE", "Mention", "Resident", "Rules", "Spread", "Sum", "Tallies", "Tally", "rules_of"]
