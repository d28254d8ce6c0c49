"""Events, and the state they fold to."""
