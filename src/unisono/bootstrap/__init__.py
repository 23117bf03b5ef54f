"""Makes the processes of a job connected ranks: environment, rendezvous, shared memory."""
