"""The papers' published figures, put beside what our machines do in the papers' settings."""
