"""Commands in a view of the workspace as it would be with the pending changes; what they write is thrown away."""
