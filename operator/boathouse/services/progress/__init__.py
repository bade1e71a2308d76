"""The leader's progress endpoint, where tasks report progress, fetch orders and post split plans."""
