"""Writes what is made for the chart and from it: `make helm`."""

import sys

from deploy.kubernetes import copies, kustomization, readme
from deploy.kubernetes.rendering import NoHelm


def main() -> None:
    copies.write()
    readme.write()
    try:
        kustomization.write()
    except NoHelm as error:
        sys.exit(f"deploy/kustomize cannot be written: {error}")


if __name__ == "__main__":
    main()
