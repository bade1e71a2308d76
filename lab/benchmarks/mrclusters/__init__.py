"""MRClusters on a modelled ResourceManager with tasks that sleep."""
