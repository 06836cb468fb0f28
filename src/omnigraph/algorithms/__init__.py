"""Graph algorithms over chosen node and edge types of one snapshot: in this process on compact arrays, or on Spark."""
