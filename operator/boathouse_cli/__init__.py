"""The command line: explains, lists and draws what Boathouse runs. Needs the extra `cli`."""
