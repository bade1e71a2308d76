"""Task attempts: their pods, their results, and what each outcome changes."""
