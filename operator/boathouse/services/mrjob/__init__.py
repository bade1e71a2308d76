"""The kind MRJob: model, pure planner, pod builder, and the effects of a plan."""
