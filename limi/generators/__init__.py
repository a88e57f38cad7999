"""Generators of natural rows with a public latent space; one file each."""
