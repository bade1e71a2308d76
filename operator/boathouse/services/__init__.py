"""Services of the operator: reconciling custom resources, and the progress endpoint."""
