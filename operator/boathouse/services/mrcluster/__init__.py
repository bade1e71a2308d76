"""The kind MRCluster: Hadoop clusters of pods that grow and shrink with their load."""
