"""Tests of one large installation: a package, so that pytest ends it when the last of them is over."""
