"""The policies of Boathouse: pure, synchronous and deterministic.

Time comes in as an argument and decisions go out; the operator and the simulator are two shells around this one core.
"""
