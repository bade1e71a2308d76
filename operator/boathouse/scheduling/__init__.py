"""The scheduler: converts pods and nodes to the policies' model, and decisions to writes."""
