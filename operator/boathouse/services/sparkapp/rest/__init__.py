"""What a driver says of itself by Spark's REST interface: for people, never as proof of anything."""
