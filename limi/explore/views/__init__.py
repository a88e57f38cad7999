"""Views: one file per page, which asks the exploration and renders what it says."""
