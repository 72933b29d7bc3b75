"""ISIS, broken on purpose."""
