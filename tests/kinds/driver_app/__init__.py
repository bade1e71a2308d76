"""A second kind on the frame, for tests only: a driver pod that creates its executors itself.

It differs from MRJob in what a frame may not take for granted: somebody else creates most of its pods, it has no split
plan, no orders for its pods, no retries and no finalizer.
"""
