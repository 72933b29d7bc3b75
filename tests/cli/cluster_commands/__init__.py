"""Commands on one cluster of real processes: a package, so that pytest ends it when the last test is over."""
