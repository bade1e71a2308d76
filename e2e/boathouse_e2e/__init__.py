"""Clusters, images and storage for the demo, the end-to-end tests and CI, on any machine."""
