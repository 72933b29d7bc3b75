"""SCALATOM: genuine total order over any set of groups. See README.md in this folder."""
