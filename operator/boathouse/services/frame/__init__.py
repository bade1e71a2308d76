"""Parts of a reconciler that are independent of the kind."""
