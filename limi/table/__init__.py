"""What a table may hold, and how frames become rows and back."""
