"""Task attempts: their pods, their results, and how an outcome changes the job's state."""
