"""Conversion of an MRJob's tasks to the scheduler's model and to pods."""
