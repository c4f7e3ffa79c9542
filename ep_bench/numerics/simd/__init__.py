"""Registers of doubles for kernels: vectors, and tiles of them."""
