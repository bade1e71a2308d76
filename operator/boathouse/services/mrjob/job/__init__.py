"""An MRJob as the operator uses it."""
