"""The native core. Everything else is in pyproject.toml.

Switches, all by environment variable: KVNODE_DEBUG=1 (no optimisation, symbols), KVNODE_SANITIZE=1 (address
and undefined-behaviour sanitizers), KVNODE_COVERAGE=1 (line tracing of the .pyx files).
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

FAST = "kvnode/_fast"
CORE = f"{FAST}/core"

DIRECTIVES = {
    "language_level": 3,
    "embedsignature": True,
    "auto_pickle": False,  # nothing here can be pickled, or needs Cython's doctest table
    "autotestdict": False,
    "boundscheck": False,
    "wraparound": False,
    "initializedcheck": False,
    "linetrace": "KVNODE_COVERAGE" in os.environ,
}


def flags() -> tuple[list[str], list[str]]:
    compile_flags = ["-std=c++17", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-unused-function"]
    if "KVNODE_SANITIZE" in os.environ:
        sanitize = ["-fsanitize=address,undefined", "-fno-omit-frame-pointer", "-g", "-O1"]
        return compile_flags + sanitize, sanitize
    if "KVNODE_DEBUG" in os.environ:
        return [*compile_flags, "-O0", "-g"], []
    return [*compile_flags, "-O3", "-g0"], []


@contextmanager
def silence() -> Iterator[None]:
    """What programs that are started here say on standard error is dropped."""
    sys.stderr.flush()
    kept = os.dup(2)
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


class BuildFast(build_ext):
    """Says in one line what is missing, before the compiler does so in a hundred."""

    def build_extensions(self) -> None:
        with tempfile.TemporaryDirectory() as scratch:
            probe = Path(scratch) / "probe.cpp"
            probe.write_text("#include <simdjson.h>\nint main() { return 0; }\n")
            try:
                with silence():
                    self.compiler.compile([str(probe)], output_dir=scratch, extra_postargs=["-std=c++17"])
            except Exception:
                sys.exit(
                    "kvnode: building from source needs a C++17 compiler and the headers of simdjson 3 "
                    "or newer (Debian: apt-get install g++ python3-dev libsimdjson-dev)"
                )
        super().build_extensions()


compile_args, link_args = flags()
extension = Extension(
    "kvnode._fast.domain",
    sources=[f"{FAST}/domain.pyx", *(str(p) for p in sorted(Path(CORE).glob("*.cpp")))],
    depends=[
        *(str(p) for p in sorted(Path(FAST).glob("*.pyx"))),
        *(str(p) for p in sorted(Path(CORE).glob("*.hpp"))),
    ],
    include_dirs=[CORE],
    libraries=["simdjson"],
    define_macros=[("CYTHON_TRACE", "1"), ("CYTHON_TRACE_NOGIL", "1")]
    if "KVNODE_COVERAGE" in os.environ
    else [],
    extra_compile_args=compile_args,
    extra_link_args=link_args,
    language="c++",
)
setup(
    ext_modules=cythonize([extension], compiler_directives=DIRECTIVES),
    cmdclass={"build_ext": BuildFast},
)
