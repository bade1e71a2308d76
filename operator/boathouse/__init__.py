"""The Boathouse operator: reconciles custom resources, and schedules the pods that it creates."""
