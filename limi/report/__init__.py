"""What a run found, as text, HTML and JSON."""
