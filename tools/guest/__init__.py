"""The demo guest: a small Linux built from Debian packages, cached and reproducible.

``python -m tools.guest --out DIR`` writes four files: ``vmlinuz`` and ``initrd.gz`` (for kernelBoot),
``disk.raw`` and ``disk.qcow2`` (boot by BIOS and by UEFI). What the guest prints and which switches it takes
is told in docs/guest.md.
"""
