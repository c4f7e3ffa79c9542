"""Child processes, the processes below them, and their memory."""
