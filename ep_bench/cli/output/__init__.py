"""Lines of plain text that the commands print, one module per group of commands."""
