"""Exploring: a local page that asks a model back, person by person."""
