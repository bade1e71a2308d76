"""An MRJob's tasks as the scheduler gets them, and their pods."""
