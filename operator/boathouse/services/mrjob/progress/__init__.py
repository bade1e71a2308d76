"""Messages between running tasks and the operator."""
