"""What every run is checked for, apart from the protocols: none of this trusts a protocol's own word."""
