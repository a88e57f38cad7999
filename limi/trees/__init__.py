"""Tree ensembles as plain arrays: one representation, and a reader for each library."""
