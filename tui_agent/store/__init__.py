"""What happens, as events, and the state that they fold to."""
