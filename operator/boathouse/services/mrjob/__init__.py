"""MRJobs: the inner model, the pure planner, the pods' builder and the shell that carries plans out."""
