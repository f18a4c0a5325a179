"""gRPC between node agent, launcher and kubelet: generated messages, thin clients and servers."""
