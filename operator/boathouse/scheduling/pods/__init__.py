"""Pods as the scheduler reads them: requests, constraints, owners, and what they hold."""
