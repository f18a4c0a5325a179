"""The few calls to the API server that the tool itself makes, with the standard library alone."""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.cluster.errors import ClusterError
from tests.cluster.pki import Pair


@dataclass(frozen=True)
class Api:
    """An API server and the certificate that we show it."""

    server: str
    ca: Path
    client: Pair

    def request(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> Any:
        """The decoded answer.

        Raises:
            ClusterError: the server refused; the message is its own.
            OSError: it could not be asked.
        """
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.client.certificate, self.client.key)
        connection = http.client.HTTPSConnection(urlsplit(self.server).netloc, timeout=30, context=context)
        try:
            headers = {"Content-Type": content_type, "User-Agent": "kvnode-test-cluster"}
            data = None if body is None else json.dumps(body)
            connection.request(method, path, body=data, headers=headers)
            response = connection.getresponse()
            text = response.read()
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()
        is_json = response.headers.get_content_type() == "application/json"
        answer = json.loads(text) if is_json else text.decode(errors="replace")
        if response.status >= 400:
            message = answer.get("message", "") if isinstance(answer, dict) else answer
            raise ClusterError(f"{method} {path}: {response.status} {message.strip()[:300]}")
        return answer

    def apply(self, document: dict[str, Any], path: str) -> None:
        """Server-side apply of a document to ``path``."""
        query = "?fieldManager=kvnode-test-cluster&force=true"
        self.request("PATCH", path + query, document, "application/apply-patch+yaml")

    def ready(self) -> bool:
        """Whether the server says that it is ready."""
        try:
            return bool(self.request("GET", "/readyz") == "ok")
        except (OSError, ClusterError):
            return False
