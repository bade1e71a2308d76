"""Kopf's side: it says which resource changed, and nothing else."""
