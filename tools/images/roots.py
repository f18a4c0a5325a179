"""Root file systems of Debian packages, by mmdebstrap."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tools.images.cache import Say, key, made, used
from tools.images.recipe import ACCOUNTS, BUILDER_PACKAGES, EXCLUDED, SUITE, Recipe
from tools.images.run import run


def root_of(recipe: Recipe, cache: Path, say: Say, *, refresh: bool) -> Path:
    """A tar of the image's root, without the project."""
    hooks = [f"--essential-hook={command}" for command in ACCOUNTS]
    hooks += [f"--customize-hook={command}" for command in recipe.touches]
    hooks += [f"--dpkgopt=path-exclude={pattern}" for pattern in EXCLUDED]
    return _bootstrap(f"root-{recipe.name}-{{}}.tar", recipe.packages, hooks, cache, say, refresh=refresh)


def builder(cache: Path, say: Say, *, refresh: bool) -> Path:
    """The directory of a root with compiler and headers, from which nothing gets into an image."""
    return _bootstrap("builder-{}", BUILDER_PACKAGES, [], cache, say, refresh=refresh)


def _bootstrap(
    name: str, packages: Sequence[str], options: Sequence[str], cache: Path, say: Say, *, refresh: bool
) -> Path:
    """``name`` is that in the cache, with the place of the key."""
    target = cache / name.format(key(SUITE, *packages, "", *options))
    if used(target) and not refresh:
        return target
    kind = name.removesuffix(".tar").removesuffix("-{}")
    say(f"{kind}: Debian {SUITE} with {', '.join(packages)}")
    with made(target) as unfinished:
        scratch = unfinished.parent
        command = [
            *("mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", f"--include={','.join(packages)}"),
            *options,
            *(SUITE, str(unfinished)),
        ]
        environment = {
            "DEBIAN_FRONTEND": "noninteractive",
            "LC_ALL": "C.UTF-8",
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "TMPDIR": str(scratch),
            **{name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")},
        }
        run(kind, command, say, scratch / "log", environment)
        if target.exists():
            target.rename(scratch / "old")
    return target
