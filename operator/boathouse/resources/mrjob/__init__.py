"""The custom resource MRJob: its spec and its status."""
