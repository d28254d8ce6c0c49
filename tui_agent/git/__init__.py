"""Access to untrusted repositories: status, diffs, checkpoints and worktrees."""
