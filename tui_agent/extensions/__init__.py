"""A person's own material: skills, commands, agents and hooks, in the folders of this and other agents."""
