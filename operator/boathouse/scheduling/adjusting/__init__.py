"""The scheduler's fourth part: acts on running tasks, as policies decide beside placing pods."""
