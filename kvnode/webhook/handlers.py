"""From an AdmissionReview's bytes to the answer's, whatever was sent."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from kvnode.api.errors import FieldError
from kvnode.spec.cause import INVALID, TYPE_INVALID, Cause
from kvnode.webhook.instances import mutate_instance, validate_instance
from kvnode.webhook.machines import mutate_machine, validate_machine_request
from kvnode.webhook.reviews import Answer, Request, ReviewError, read_request, write_answer
from kvnode.webhook.settings import Settings

logger = logging.getLogger(__name__)

Decision: TypeAlias = Callable[[Request, Settings], Answer]

MUTATE, VALIDATE = "/mutate", "/validate"
"""Paths of the two webhooks."""

_DECISIONS: dict[str, dict[str, Decision]] = {
    MUTATE: {"virtualmachineinstances": mutate_instance, "virtualmachines": mutate_machine},
    VALIDATE: {"virtualmachineinstances": validate_instance, "virtualmachines": validate_machine_request},
}
PATHS = tuple(_DECISIONS)


@dataclass(slots=True)
class Admission:
    """The webhooks' answers by the settings of the moment."""

    settings: Settings

    def answer(self, path: str, body: bytes) -> bytes:
        """The answer to a review that was sent to `path`, one of `PATHS`.

        Raises:
            ReviewError: what was sent is no review that these webhooks are for.
        """
        request = read_request(body)
        decide = _DECISIONS[path].get(request.resource)
        if decide is None or request.subresource:
            # Never registered for these; who asks all the same is told that there is nothing to say.
            return write_answer(request, Answer())
        try:
            answer = decide(request, self.settings)
        except FieldError as error:
            answer = Answer(causes=[Cause(error.field, TYPE_INVALID, error.message)])
        except Exception:
            # A defect must not let anything through, nor take the server down.
            logger.exception("%s %s: a defect while deciding", request.operation, request.resource)
            answer = Answer(causes=[Cause("", "InternalError", "the webhook failed: see its log")], code=500)
        try:
            return write_answer(request, answer)
        except TypeError:  # the encoder goes less deep than the decoder
            cause = Cause("", INVALID, "the object is nested too deeply")
            return write_answer(request, Answer(causes=[cause]))


__all__ = ["MUTATE", "PATHS", "VALIDATE", "Admission", "ReviewError"]
