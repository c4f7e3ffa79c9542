"""The commands of ``ep-bench``, one module per group."""
