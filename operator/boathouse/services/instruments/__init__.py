"""Measure nodes for the policies: read the kubelets' metrics and publish what each node uses."""
