"""The status of an MRCluster as a value."""
