"""One audit from a model and a table to a result, and run folders."""
