"""The project's container images, from Debian packages and pinned wheels (docs/cluster.md)."""
