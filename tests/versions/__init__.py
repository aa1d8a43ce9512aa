"""The suite on the oldest and the newest libraries of every Python at hand, and from a wheel."""
