"""The domain manager: what becomes of a VM's domain in libvirt, one module a concern.

:class:`kvnode.launcher.manager.manager.Manager` puts them together.
"""
