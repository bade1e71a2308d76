"""What happens next to an application. Pure."""
