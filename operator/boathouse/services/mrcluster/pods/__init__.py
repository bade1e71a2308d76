"""Pods of a cluster: how they are built, and as the planner sees them."""
