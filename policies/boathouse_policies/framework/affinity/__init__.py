"""Constraints on where other pods are, as counts of pods: pod affinity and anti-affinity, and topology spread."""
