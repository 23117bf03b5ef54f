"""Starting the ranks of a job on this machine: ``unisono run`` and ``unisono.spawn()``."""
