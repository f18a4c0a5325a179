"""Networking of a launcher pod: its links, and the DHCP servers that tell a guest the pod's addresses."""
