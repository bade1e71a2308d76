"""The custom resource MRCluster: a Hadoop cluster that grows and shrinks."""
