"""From an application and the number of an attempt to the objects that Spark's own submission would create. Pure."""
