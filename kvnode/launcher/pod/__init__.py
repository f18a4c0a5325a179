"""The launcher of a pod as a process: its start-up, its daemons, its connection to libvirt, and its end."""
