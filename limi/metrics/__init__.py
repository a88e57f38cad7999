"""Pure functions that read findings and rows."""
