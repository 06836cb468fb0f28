"""Reading the rows of a type: what Lance answers, what is kept in memory."""
