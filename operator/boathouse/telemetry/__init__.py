"""Logs, metrics and health probes of the operator."""
