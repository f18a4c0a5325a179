"""A real Kubernetes for tests and demonstrations, made from package registries alone (docs/cluster.md)."""
