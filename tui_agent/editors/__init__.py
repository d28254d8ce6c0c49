"""Sessions in editors: an agent of the Agent Client Protocol on top of control sockets."""
