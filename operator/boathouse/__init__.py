"""The Boathouse operator: runs MRJobs, and schedules the pods that it makes."""
