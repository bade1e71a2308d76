"""Split plans: posted by a job's setup, stored in ConfigMaps."""
