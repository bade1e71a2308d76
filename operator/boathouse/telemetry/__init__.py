"""Logs, metrics and health: how the operator shows what it does."""
