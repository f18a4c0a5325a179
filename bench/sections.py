"""Instructions by section of the domain, counted by callgrind: the same in every run.

The counted build is the shipped one but for three flags, by which the functions of the sections stay functions: so
each can be told from the others, at the price of a few instructions more.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "bench"

DRIVER = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("kvnode._fast.domain", sys.argv[1])
sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from bench.sample import bound, reference_cases
for vmi, context in bound(reference_cases()):
    context._converter.convert(vmi)
"""

_LINE = re.compile(r"^\s*([\d,]+)\s+\(\s*[\d.]+%\)\s+[^:]*:(.*?)(?: \[.*)?$")
_TOTAL = re.compile(r"^\s*([\d,]+) .*PROGRAM TOTALS", re.MULTILINE)


@dataclass(frozen=True)
class Counts:
    """Instructions: of all conversions together, and of each function with what it calls."""

    total: int
    inclusive: dict[str, int]


def build() -> Path:
    """The extension, built for counting."""
    outlined = "-fno-inline-functions-called-once -fno-inline-small-functions -fno-inline-functions"
    command = [sys.executable, "setup.py", "--quiet", "build_ext", "--force"]
    folders = ["--build-lib", str(BUILD / "lib"), "--build-temp", str(BUILD / "temp")]
    environment = {**os.environ, "CFLAGS": outlined, "CXXFLAGS": outlined}
    subprocess.run([*command, *folders], cwd=ROOT, check=True, env=environment, capture_output=True)
    return next((BUILD / "lib").glob("kvnode/_fast/domain.*.so"))


def count() -> Counts | None:
    """What the conversion of the reference cases takes; None where there is no valgrind."""
    if shutil.which("valgrind") is None:
        return None
    extension = build()
    out = BUILD / "callgrind.out"
    subprocess.run(
        [
            *("valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"),
            "--toggle-collect=__pyx_pw_*9Converter_*convert(*",
            *(sys.executable, "-c", DRIVER, str(extension)),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        check=True,
        capture_output=True,
    )
    table = subprocess.run(
        ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(out)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return read(table)


def read(table: str) -> Counts:
    """The figures in what callgrind_annotate printed."""
    total = _TOTAL.search(table)
    if total is None:
        raise ValueError("callgrind_annotate printed no total")
    inclusive: dict[str, int] = {}
    for line in table.splitlines():
        found = _LINE.match(line)
        if found:
            number = int(found[1].replace(",", ""))
            inclusive[name_of(found[2])] = max(number, inclusive.get(name_of(found[2]), 0))
    return Counts(int(total[1].replace(",", "")), inclusive)


def name_of(symbol: str) -> str:
    """`write_disks` of `__pyx_f_6kvnode_5_fast_6domain_write_disks(kv::Build&)`."""
    plain = re.sub(r"\(.*", "", symbol.strip())
    return re.sub(r"^(?:static )?(?:void )?__pyx_\w+?_6domain_", "", plain)
