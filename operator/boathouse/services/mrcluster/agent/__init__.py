"""The leader's side of the agents in the masters' pods: their reports, and the orders that they get in response."""
