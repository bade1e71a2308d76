"""Fields of pods that the kinds have in common."""
