"""Find natural people whose model decision flips when only a protected value changes."""
