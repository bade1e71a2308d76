"""Internal model of an MRJob."""
