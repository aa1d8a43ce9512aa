"""What a person types and sees: shared by every command of the project."""
