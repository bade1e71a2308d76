"""What happens next to a cluster and its nodes. Pure."""
