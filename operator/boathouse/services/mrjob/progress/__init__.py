"""Communication between running tasks and the operator."""
