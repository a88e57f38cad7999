"""Other systems that keep runs and models: what limi found goes there, and theirs is tested."""
