"""The user's own skills, commands, agents and hooks, in the folders of this and other agents."""
