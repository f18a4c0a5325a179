"""Messages to bytes and back: a readable few; the reference set has them all."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError

from kvnode.rpc.cmd_v1_pb2 import (
    CPU,
    ExecResponse,
    Response,
    VirtualMachineOptions,
    VMIRequest,
    VMStatsRequest,
)


def test_a_response():
    assert Response(success=True, message="m").SerializeToString().hex() == "08011201" + b"m".hex()


def test_numbers_in_a_list_are_packed():
    assert CPU(id=101, siblings=[201]).SerializeToString().hex() == "08651202c901"


def test_a_negative_number_takes_ten_bytes():
    assert ExecResponse(exitCode=-1).SerializeToString().hex() == "10" + "ff" * 9 + "01"


def test_what_is_asked_for_is_there_though_empty():
    request = VMStatsRequest.FromString(bytes.fromhex("0a00"))
    assert request.HasField("domainStats")
    assert not request.HasField("dirtyRate")


def test_maps_are_written_in_the_order_of_their_keys():
    options = VirtualMachineOptions(interfaceDomainAttachment={"b": "tap", "a": "tap"})
    assert options.SerializeToString(deterministic=True).index(b"\x01a") < 10


def test_unknown_fields_are_passed_over():
    assert Response.FromString(bytes.fromhex("9a06066675747572650801")).success


@pytest.mark.parametrize("garbage", ["120561", "1201ff"])
def test_what_is_cut_short_or_no_text_is_refused(garbage):
    with pytest.raises(DecodeError):
        Response.FromString(bytes.fromhex(garbage))


def test_a_vmi_is_given_as_a_mapping():
    request = VMIRequest(vmi={"vmiJson": b"{}"})
    assert request.SerializeToString().hex() == "0a040a02" + b"{}".hex()
