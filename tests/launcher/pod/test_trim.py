"""What may be given back of a process's memory, and that it goes on after that."""

from __future__ import annotations

import subprocess
import sys

from kvnode.launcher.pod.trim import clean_code

SMAPS = """\
7f00-7f10 r-xp 00000000 00:00 77 /lib/clean.so
Rss: 4 kB
Private_Dirty:         0 kB
7f20-7f30 r-xp 00000000 00:00 78 /lib/patched.so
Private_Dirty:         4 kB
7f40-7f50 r--p 00000000 00:00 77 /lib/clean.so
Private_Dirty:         0 kB
7f60-7f70 rw-p 00000000 00:00 77 /lib/clean.so
Private_Dirty:         0 kB
7f80-7f90 r-xp 00000000 00:00 0 [vdso]
Private_Dirty:         0 kB
"""


def test_only_code_of_files_that_nobody_changed() -> None:
    assert list(clean_code(SMAPS)) == [(0x7F00, 0x10)]


def test_a_process_goes_on_and_is_smaller() -> None:
    script = """
import json, decimal, xml.etree.ElementTree as ET, ctypes, libvirt
from kvnode.launcher.pod.trim import trim_memory
def resident():
    return int(open("/proc/self/statm").read().split()[1])
before = resident()
trim_memory()
after = resident()
assert json.loads("[1]") == [1] and ET.fromstring("<a/>").tag == "a" and libvirt.getVersion() > 0
print(before, after)
"""
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    before, after = map(int, output.split())
    assert after < before
