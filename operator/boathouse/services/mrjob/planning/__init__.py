"""The planner: computes the next actions of an MRJob from its state and its pods."""
