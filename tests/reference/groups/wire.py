"""``wire``: every message, to bytes and back."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor_pool import Default
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from kvnode.rpc import cmd_info_pb2, cmd_v1_pb2, notify_info_pb2, notify_v1_pb2
from tests.reference.common import Case, Outcome

FILES = (cmd_info_pb2, cmd_v1_pb2, notify_info_pb2, notify_v1_pb2)


def run(case: Case) -> Outcome:
    """Encode the JSON to the same bytes; decode the bytes to the same JSON, and encode that again."""
    row = case.data
    message = GetMessageClass(Default().FindMessageTypeByName(row["message"]))
    if row.get("decode_only"):
        want = {"error": True} if row.get("error") else {"json": row["json"], "hex": row["remarshal_hex"]}
        return Outcome.of(want, _decoded(message, row["hex"]))
    encoded = ParseDict(row["json"], message()).SerializeToString(deterministic=True).hex()
    want = {"encoded": row["hex"], "json": row["json"], "hex": row["hex"]}
    return Outcome.of(want, {"encoded": encoded, **_decoded(message, row["hex"])})


def _decoded(message: type[Message], text: str) -> dict[str, Any]:
    try:
        got = message.FromString(bytes.fromhex(text))
    except DecodeError:
        return {"error": True}
    # The reference drops what it does not know.
    got.DiscardUnknownFields()
    return {
        "json": MessageToDict(got, preserving_proto_field_name=True),
        "hex": got.SerializeToString(deterministic=True).hex(),
    }
