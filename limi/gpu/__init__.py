"""The same search where tensors stay on a device."""
