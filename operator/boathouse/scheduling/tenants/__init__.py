"""Limits of a namespace: shapes of pods, and backoff after refusals."""
