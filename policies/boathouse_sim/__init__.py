"""The simulator: the operator's own cycle and policies in virtual time, and fluid models to check orders against."""
