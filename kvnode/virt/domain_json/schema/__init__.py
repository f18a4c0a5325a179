"""The structures of KubeVirt's ``Domain`` (``pkg/virt-launcher/virtwrap/api/schema.go``), a module a section."""
