"""Places: containers, hosts and queues in which commands run on a copy of the proposed state."""
