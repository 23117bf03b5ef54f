"""How the processes of a job become connected ranks: environment, rendezvous, shared memory."""
