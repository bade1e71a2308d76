"""How a running task is suspended and resumed: to change that, change this folder.

`stages` has its states, which follow from the pod, its words and its numbers. `suspending` begins a suspension, for a
policy or for the author of a job, and ends it.
"""
