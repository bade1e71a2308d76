"""The leader's progress endpoint: tasks report there, get their orders, and setup posts the split plan."""
