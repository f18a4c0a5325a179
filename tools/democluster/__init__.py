"""The demo on a cluster: a real Kubernetes, kvnode in it, a VM in that."""
