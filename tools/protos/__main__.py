"""``python -m tools.protos``: generate ``kvnode/rpc/*_pb2.py`` and their stubs from ``protos/*.proto``.

The generated files are committed, so that installing the project needs no protobuf compiler; ``--check``
writes nothing and fails when a committed file is not what the compiler gives now.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc  # type: ignore[import-untyped]

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "protos"
PACKAGE = Path("kvnode") / "rpc"
PATTERNS = ("*_pb2.py", "*_pb2.pyi")


def generate(destination: Path, sources: Path = SOURCES) -> dict[str, bytes]:
    """Compile all of ``sources`` into ``destination``; the answer maps file names to their content.

    Raises:
        ValueError: the compiler refuses a source (it has said why on standard error).
    """
    names = sorted(path.name for path in sources.glob("*.proto"))
    # Known to protobuf as kvnode/rpc/NAME.proto: unique in a process that loads other packages' messages too.
    arguments = [
        "protoc",
        f"--proto_path={PACKAGE.as_posix()}={sources}",
        f"--python_out={destination}",
        f"--pyi_out={destination}",
        *(f"{PACKAGE.as_posix()}/{name}" for name in names),
    ]
    if protoc.main(arguments) != 0:
        raise ValueError(f"{sources.name}/ does not compile")
    return {path.name: _finish(path) for path in generated_files(destination / PACKAGE)}


def _finish(path: Path) -> bytes:
    content = path.read_bytes()
    if path.suffix == ".pyi":
        # The compiler writes bare Mapping, which strict checking refuses.
        return b'# mypy: disable-error-code="type-arg"\n' + content
    return content


def generated_files(directory: Path) -> list[Path]:
    """The generated files in ``directory``, sorted by name."""
    return sorted(path for pattern in PATTERNS for path in directory.glob(pattern))


def stale(wanted: dict[str, bytes], directory: Path) -> list[str]:
    """A line for each file of ``directory`` that is missing, different, or has no source any more."""
    present = {path.name: path.read_bytes() for path in generated_files(directory)}
    lines = [f"{name} is missing" for name in wanted if name not in present]
    lines += [f"{name} is out of date" for name in wanted if present.get(name, wanted[name]) != wanted[name]]
    lines += [f"{name} has no source" for name in present if name not in wanted]
    return sorted(lines)


def main(argv: list[str] | None = None) -> int:
    """Run the command; the answer is its exit code: 0 done or current, 1 not."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.protos", description="Generate the protobuf modules."
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is not current")
    arguments = parser.parse_args(argv)
    target = ROOT / PACKAGE
    with tempfile.TemporaryDirectory() as scratch:
        try:
            wanted = generate(Path(scratch))
        except ValueError as error:
            print(f"protos: {error}", file=sys.stderr)
            return 1
    lines = stale(wanted, target)
    if arguments.check:
        for line in lines:
            print(f"protos: {PACKAGE}/{line}; run python -m tools.protos", file=sys.stderr)
        return 1 if lines else 0
    for path in generated_files(target):
        if path.name not in wanted:
            path.unlink()
    for name, content in wanted.items():
        (target / name).write_bytes(content)
    print(f"protos: {len(wanted)} files, {len(lines)} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
