"""Agent of an MRCluster: a container of the master's pod between the operator and the cluster's own programs."""
