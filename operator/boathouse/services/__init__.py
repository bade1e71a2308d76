"""What the operator does with the resources: reconciling, and the progress endpoint."""
