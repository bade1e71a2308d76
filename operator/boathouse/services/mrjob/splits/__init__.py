"""Split plans: posted by a job's setup task and stored in ConfigMaps."""
