"""Results out: files and the terminal."""
