"""Bearer tokens, and where they come from."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

import orjson

from kvnode.kube.errors import ConfigurationError

REREAD_SECONDS = 60.0
EXEC_SECONDS = 60.0


class Credential(Protocol):
    """A source of tokens."""

    async def token(self) -> str:
        """The token to send now, "" for none.

        Raises:
            ConfigurationError: it cannot be had.
        """
        ...

    def reject(self) -> None:
        """The server did not take the token: get another the next time."""
        ...


class StaticToken:
    """One token for ever; "" is none at all."""

    def __init__(self, token: str = "") -> None:
        self._token = token

    async def token(self) -> str:
        """The token."""
        return self._token

    def reject(self) -> None:
        """There is no other."""


class TokenFile:
    """A token in a file that is written anew from time to time, as kubelet does for service accounts."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` gives seconds; the file is read once a minute at most, and when the server rejects the token."""
        self._path = path
        self._clock = clock
        self._token = ""
        self._read_at = float("-inf")

    async def token(self) -> str:
        """The token, read now if it was read more than a minute ago.

        Raises:
            ConfigurationError: the file could never be read, or is empty.
        """
        now = self._clock()
        if now - self._read_at < REREAD_SECONDS:
            return self._token
        try:
            found = self._path.read_text().strip()
        except OSError as error:
            found, problem = "", error.strerror or str(error)
        else:
            problem = "it is empty"
        if found:
            self._token, self._read_at = found, now
        elif not self._token:  # in the middle of a rotation the old one is good for a while
            raise ConfigurationError(f"token file {self._path}: {problem}")
        return self._token

    def reject(self) -> None:
        """Read the file again the next time."""
        self._read_at = float("-inf")


class TokenCommand:
    """A program of a kubeconfig that prints an ``ExecCredential`` (client.authentication.k8s.io)."""

    def __init__(
        self,
        command: list[str],
        environment: dict[str, str],
        api_version: str,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`now` gives seconds since 1970, as tokens' ends are times of day."""
        self._command = command
        self._environment = environment
        self._api_version = api_version
        self._now = now
        self._token = ""
        self._expires = float("inf")

    async def token(self) -> str:
        """The program's token, asked for again when it has expired.

        Raises:
            ConfigurationError: the program is missing, failed, hung or printed something else.
        """
        if not self._token or self._now() >= self._expires:
            self._token, self._expires = self._read(await self._run())
        return self._token

    def reject(self) -> None:
        """Ask the program again the next time."""
        self._token = ""

    async def _run(self) -> bytes:
        info = {"apiVersion": self._api_version, "kind": "ExecCredential", "spec": {"interactive": False}}
        environment = {**os.environ, **self._environment, "KUBERNETES_EXEC_INFO": orjson.dumps(info).decode()}
        name = self._command[0]
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            raise ConfigurationError(f"credential program {name}: {error.strerror}") from error
        try:
            async with asyncio.timeout(EXEC_SECONDS):
                out, errors = await process.communicate()
        except TimeoutError:
            raise ConfigurationError(
                f"credential program {name}: no answer in {EXEC_SECONDS:.0f} s"
            ) from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            last = (errors.decode(errors="replace").strip().splitlines() or ["no message"])[-1]
            raise ConfigurationError(f"credential program {name}: exit code {process.returncode}: {last}")
        return out

    def _read(self, out: bytes) -> tuple[str, float]:
        name = self._command[0]
        try:
            document: Any = orjson.loads(out)
            status = document["status"]
            token = status["token"]
            end = status.get("expirationTimestamp")
            expires = datetime.fromisoformat(end).timestamp() if end else float("inf")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ConfigurationError(
                f"credential program {name}: printed no ExecCredential with status.token"
            ) from None
        if not isinstance(token, str) or not token:
            raise ConfigurationError(f"credential program {name}: status.token is no text")
        return token, expires
