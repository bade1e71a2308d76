"""The next actions of an MRJob, computed from its state and its pods."""
