"""Volumes and claims of pods."""
