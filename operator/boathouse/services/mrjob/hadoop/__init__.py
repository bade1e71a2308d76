"""Jobs that run on a Hadoop cluster of their namespace."""
