"""Command line: explains, lists and draws jobs, pods and queues. Needs the extra `cli`."""
