"""From a cluster to the configuration files of Hadoop. Pure."""
