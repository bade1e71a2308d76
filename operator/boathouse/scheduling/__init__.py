"""The scheduler's shell: from pods and nodes to the policies' model, and from their decisions to writes."""
