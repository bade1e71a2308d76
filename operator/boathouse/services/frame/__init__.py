"""Parts of a reconciler that know no kind."""
