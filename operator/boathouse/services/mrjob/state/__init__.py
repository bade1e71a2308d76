"""The state of an MRJob, as its status stores it."""
