"""Build the fuzzer of the native core and run it: ``python -m tools.fuzz --seconds 60``.

With clang and its libFuzzer the run is guided by coverage; with g++ alone the inputs of the corpus are changed at
random. The address and undefined-behaviour sanitizers watch either way. An input at fault is left in the build
folder, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HERE = Path(__file__).resolve().parent
CORE = ROOT / "kvnode" / "_fast" / "core"
CORPUS = ROOT / "tests" / "fuzz" / "corpus"

SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]


def has_libfuzzer(compiler: str, scratch: Path) -> bool:
    """Whether the compiler is there and links libFuzzer."""
    if shutil.which(compiler) is None:
        return False
    probe = scratch / "probe.cpp"
    probe.write_text(
        'extern "C" int LLVMFuzzerTestOneInput(const unsigned char*, unsigned long) { return 0; }\n'
    )
    command = [compiler, "-fsanitize=fuzzer,address", str(probe), "-o", str(scratch / "probe")]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def libpython() -> list[str]:
    """How to link Python's library: the generated module needs it, though what is run here never calls it."""
    folder = sysconfig.get_config_var("LIBDIR")
    return [
        f"-L{folder}",
        f"-Wl,-rpath,{folder}",
        f"-lpython{sysconfig.get_config_var('LDVERSION')}",
        "-lm",
        "-ldl",
    ]


def build(scratch: Path) -> tuple[Path, bool]:
    """The fuzzer, and whether it is libFuzzer. Raises subprocess.CalledProcessError."""
    scratch.mkdir(parents=True, exist_ok=True)
    directives = ("language_level=3", "boundscheck=False", "wraparound=False", "initializedcheck=False")
    generated = scratch / "domain.cpp"
    cython = [sys.executable, "-m", "cython", "--cplus", *(f"-X{d}" for d in directives)]
    subprocess.run([*cython, "kvnode/_fast/domain.pyx", "-o", str(generated)], cwd=ROOT, check=True)
    guided = has_libfuzzer("clang++", scratch)
    compiler = ["clang++", "-fsanitize=fuzzer"] if guided else ["g++"]
    sources = [HERE / "harness.cpp", *sorted(CORE.glob("*.cpp")), *([] if guided else [HERE / "driver.cpp"])]
    fuzzer = scratch / "fuzzer"
    subprocess.run(
        [
            *(*compiler, "-std=c++17", "-g", "-O1", "-w", *SANITIZERS),
            *(f"-I{folder}" for folder in (scratch, HERE, CORE, sysconfig.get_path("include"))),
            *map(str, sources),
            *("-o", str(fuzzer), "-lsimdjson", *libpython()),
        ],
        cwd=ROOT,
        check=True,
    )
    return fuzzer, guided


def run(fuzzer: Path, guided: bool, scratch: Path, seconds: int, inputs: list[Path]) -> int:
    """Fuzz for a while, or run single inputs. Answers the exit code: 1 for a finding."""
    corpus = scratch / "corpus"
    corpus.mkdir(exist_ok=True)
    limits = [f"-max_total_time={seconds}", "-rss_limit_mb=4096", "-timeout=10", "-max_len=32768"]
    if guided:
        limits += [f"-dict={HERE / 'fields.dict'}", "-print_final_stats=1", "-verbosity=0"]
    where = list(map(str, inputs)) or ([str(corpus), str(CORPUS)] if guided else [str(CORPUS)])
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1"}
    done = subprocess.run([str(fuzzer), *limits, *where], cwd=scratch, env=environment, check=False)
    return 1 if done.returncode else 0


def main() -> int:
    """Run the command; the answer is its exit code: 0 nothing found, 1 a finding, 2 the fuzzer cannot be built."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="how long (60)")
    parser.add_argument(
        "--build", type=Path, default=ROOT / "build" / "fuzz", metavar="DIR", help="build folder"
    )
    parser.add_argument("inputs", nargs="*", type=Path, metavar="INPUT", help="run these inputs alone")
    args = parser.parse_args()
    try:
        fuzzer, guided = build(args.build)
    except (OSError, subprocess.CalledProcessError) as e:
        print(f"fuzz: the fuzzer cannot be built: {e}", file=sys.stderr)
        return 2
    print(f"fuzz: {'libFuzzer' if guided else 'unguided'}, {args.seconds} s", file=sys.stderr)
    return run(fuzzer, guided, args.build.resolve(), args.seconds, [p.resolve() for p in args.inputs])


if __name__ == "__main__":
    sys.exit(main())
