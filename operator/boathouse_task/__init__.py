"""Runtime of the task pods: reads splits, runs the user's commands, sorts, shuffles and commits."""
