"""How a running task is suspended and resumed: to change that, change this folder.

`reasons` and `timeouts` are its words and its numbers. `record` is what the pod keeps of it, `stages` its state, which
follows from the pod. `suspending` begins it, `by_hand` for the author of a job, and `keeper` ends it.
"""
