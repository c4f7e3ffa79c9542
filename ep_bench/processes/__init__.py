"""Child processes, their descendants, and their memory."""
