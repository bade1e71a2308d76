"""State of an MRJob, which its status stores."""
