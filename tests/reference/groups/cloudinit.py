"""``cloudinit``: what is on the ISOs, and how the tool that writes them is called."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kvnode.launcher import cloudinit, config_disks, iso, paths
from kvnode.launcher.errors import LauncherError
from tests.reference.common import Case, Outcome

SOURCES = {
    "config-map": "CONFIG_MAPS",
    "secret": "SECRETS",
    "sysprep": "SYSPREPS",
    "downwardapi": "DOWNWARD_APIS",
}
DISKS = {
    "config-map-disks": "CONFIG_MAP_DISKS",
    "secret-disks": "SECRET_DISKS",
    "sysprep-disks": "SYSPREP_DISKS",
    "downwardapi-disks": "DOWNWARD_API_DISKS",
    "service-account-disk": "SERVICE_ACCOUNT_DISK",
}


def run(case: Case) -> Outcome:
    """Run one row."""
    with tempfile.TemporaryDirectory() as directory:
        base = Path(directory)
        kind = case.data["kind"]
        if kind == "cloud-init":
            return _cloud_init(case.data, base)
        if kind == "cloud-init-empty":
            return _empty(case.data, base)
        if kind == "config-iso":
            return _config_iso(case.data, base)
    return _config_dirs(case.data)


@contextmanager
def _recorded() -> Iterator[list[tuple[list[str], dict[str, dict[str, str]]]]]:
    """Record calls of the tool, with the files that the last argument holds; it writes an empty image."""
    calls: list[tuple[list[str], dict[str, dict[str, str]]]] = []

    def record(arguments: list[str], _reason: str) -> bytes:
        source = Path(arguments[-1])
        files = {
            str(file.relative_to(source)): {
                "content": file.read_text(),
                "mode": f"{file.stat().st_mode & 0o777:04o}",
            }
            for file in source.rglob("*")
            if file.is_file()
        }
        calls.append((arguments, files))
        Path(arguments[arguments.index("-output") + 1]).touch()
        return b""

    with patch.object(iso, "run_tool", record):
        yield calls


def _cloud_init(row: dict[str, Any], base: Path) -> Outcome:
    secrets = base / "secrets"
    _write(secrets, row["secret_files"])
    keys = (
        "data",
        "data_source",
        "files",
        "generate_error",
        "iso_argv",
        "iso_path",
        "read_error",
        "valid",
        "volume_name",
    )
    want = {key: row[key] for key in keys if key in row}
    if row.get("generate_error"):
        want = {key: value for key, value in want.items() if value or value is False}
    got: dict[str, Any] = {"read_error": False}
    try:
        data = cloudinit.read(row["vmi"], secrets)
    except LauncherError:
        return Outcome.of(want, {"read_error": True})
    if data is None:
        return Outcome.of(want, got | {"data": None})
    if row["metadata_dropped"]:
        data = replace(data, metadata=None)
    with _recorded() as calls, patch.object(paths, "CLOUD_INIT", base):
        got |= {
            "data_source": data.source,
            "volume_name": data.volume,
            "valid": data.is_complete,
            "generate_error": False,
        }
        try:
            cloudinit.generate(row["vmi"], data, row["devices"])
        except LauncherError:
            got["generate_error"] = True
        got["iso_path"] = str(cloudinit.iso_path(row["vmi"], data.source)).replace(str(base), "<base>")
        if calls:
            arguments, got["files"] = calls[0]
            got["iso_argv"] = [argument.replace(str(base), "<base>") for argument in arguments]
    return Outcome.of(want, got)


def _empty(row: dict[str, Any], base: Path) -> Outcome:
    want = {key: row[key] for key in ("all_zero", "generate_error", "iso_path", "size")}
    vmi = {"metadata": {"name": "testvmi", "namespace": "ns1"}, "spec": {}}
    source = "configDrive" if row["iso_path"].endswith("configdrive.iso") else "noCloud"
    data = cloudinit.CloudInitData(source, "ci", b"", b"", None)
    with patch.object(paths, "CLOUD_INIT", base):
        cloudinit.generate_empty(vmi, data, row["requested_size"])
        target = cloudinit.iso_path(vmi, source)
    content = target.read_bytes()
    got = {
        "all_zero": not any(content),
        "generate_error": False,
        "iso_path": str(target).replace(str(base), "<base>"),
        "size": len(content),
    }
    return Outcome.of(want, got)


def _config_iso(row: dict[str, Any], base: Path) -> Outcome:
    sources, disks = base / "sources", base / "disks"
    _write(sources, row["source_files"])
    vmi = {
        "metadata": {"name": "testvmi", "namespace": "ns1"},
        "spec": {"domain": {"devices": {"disks": row["disks"]}}, "volumes": row["volumes"]},
        "status": {"volumeStatus": row["volume_status"]},
    }
    places: dict[str, Any] = {name: sources / folder for folder, name in SOURCES.items()}
    places |= {name: disks / folder for folder, name in DISKS.items()}
    places["SERVICE_ACCOUNT"] = sources / "serviceaccount"
    error = False
    with _recorded() as calls, patch.multiple(paths, **places):
        try:
            config_disks.prepare(vmi, empty=row["empty_iso"])
        except LauncherError:
            error = True
    named = [
        [one.replace(str(disks), "<disks>").replace(str(sources), "<sources>") for one in arguments]
        for arguments, _ in calls
    ]
    images = {
        str(image.relative_to(disks)): image.stat().st_size for image in disks.rglob("*") if image.is_file()
    }
    want = {key: row[key] for key in ("iso_argvs", "created_images", "returns_error")}
    return Outcome.of(want, {"iso_argvs": named or None, "created_images": images, "returns_error": error})


def _config_dirs(row: dict[str, Any]) -> Outcome:
    """Every folder that the row names is one of the project's."""
    ours = {str(value) for value in vars(paths).values() if isinstance(value, Path)}

    def known(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: known(item) for key, item in value.items()}
        if isinstance(value, str) and value.startswith("/") and value.rstrip("/") not in ours:
            return f"no folder of ours: {value}"
        return value

    return Outcome.of(row, known(row))


def _write(base: Path, folders: dict[str, dict[str, str]] | None) -> None:
    for folder, files in (folders or {}).items():
        (base / folder).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            if name.endswith("/"):
                (base / folder / name).mkdir()
            else:
                (base / folder / name).write_text(content)
