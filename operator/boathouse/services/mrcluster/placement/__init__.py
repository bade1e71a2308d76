"""A cluster's nodes as the scheduler sees them."""
