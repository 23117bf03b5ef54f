"""The communicator, and how a job gets its ranks."""
