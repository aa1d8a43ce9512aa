"""Kills, races, damage and hostile surroundings: what may happen to a command, until time is up."""
