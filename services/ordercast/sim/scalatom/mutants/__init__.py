"""SCALATOM broken on purpose, and the stories that show it."""
