"""Wrong, broken or hostile input: one error that names the field, never a crash and never malformed XML."""

import json
import time
from contextlib import suppress
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kvnode

CONTEXT = kvnode.ConverterContext({"kvmAvailable": True})


def refuse(vmi, context=CONTEXT) -> kvnode.ConversionError:
    with pytest.raises(kvnode.ConversionError) as caught:
        kvnode.convert(vmi, context)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "empty"),
        (b"   ", "JSON"),
        (b"{", "JSON"),
        (b'{"metadata":{"name":"x"', "JSON"),
        (b'{"metadata":{"name":"x', "string"),
        (b'{"a":NaN}', "JSON"),
        (b'{"a":Infinity}', "JSON"),
        (b"{} {}", "JSON"),
        (b"\xff\xfe{}", ""),
        (b'{"a":"\xc3\x28"}', "UTF-8"),
        (b'{"a":"\x01"}', "control"),
        (b'{"a":"\\ud800"}', "surrogate"),
        (b'{"a":"\\x41"}', "escape"),
        (b'{"a":1e999}', "number"),
        (b'{"a":123456789012345678901234567890}', ""),  # newer simdjson names no number
        (b'{"a":' * 200 + b"1" + b"}" * 200, "128 levels"),
        (b"[" * 100_000, ""),
    ],
)
def test_broken_json_is_told(text, says):
    error = refuse(text)
    assert says in str(error)
    assert error.field == ""


@pytest.mark.parametrize("vmi", [b"[]", b"3", b'"text"', b"true", b"null"])
def test_only_an_object_is_a_vmi(vmi):
    assert "object" in str(refuse(vmi))


@pytest.mark.parametrize("vmi", [None, 3, [1], 1.5, object()])
def test_only_bytes_text_and_mappings_are_taken(vmi):
    assert "must be JSON bytes" in str(refuse(vmi))


def test_text_with_a_lone_surrogate():
    assert "surrogate" in str(refuse('{"metadata":{"name":"\ud800"}}'))


def test_a_mapping_that_json_cannot_hold():
    refuse({"metadata": {"name": object()}})
    loop: dict = {}
    loop["spec"] = loop
    refuse(loop)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("metadata", 3),
        ("metadata.name", ["x"]),
        ("spec", "x"),
        ("spec.domain", []),
        ("spec.domain.cpu", "many"),
        ("spec.domain.cpu.cores", "2"),
        ("spec.domain.cpu.cores", -1),
        ("spec.domain.cpu.cores", 2.5),
        ("spec.domain.cpu.cores", 2**32),
        ("spec.domain.cpu.maxSockets", True),
        ("spec.domain.cpu.features", {"name": "x"}),
        ("spec.domain.memory.guest", "lots"),
        ("spec.domain.memory.guest", "-1Gi"),
        ("spec.domain.memory.guest", True),
        ("spec.domain.devices", 1),
        ("spec.domain.devices.autoattachSerialConsole", "no"),
        ("spec.domain.firmware.bootloader.bios.useSerial", 1),
        ("spec.domain.clock.utc.offsetSeconds", "1"),
        ("spec.volumes", {}),
    ],
)
def test_a_wrong_type_names_its_field(field, value):
    vmi: dict = {
        "metadata": {"name": "x", "namespace": "y"},
        "spec": {"domain": {"memory": {"guest": "1Gi"}}},
    }
    *way, last = field.split(".")
    at = vmi
    for step in way:
        at = at.setdefault(step, {})
    at[last] = value
    assert refuse(vmi).field == field


def test_the_place_in_a_list_is_named():
    vmi = {"spec": {"volumes": [{"name": "a"}, {"name": 5}]}}
    assert refuse(vmi).field == "spec.volumes[1].name"


@pytest.mark.parametrize("bad", ["\x00", "\x01", "\x1b", "\ufffe", "\uffff", "a\x0bb"])
def test_characters_that_xml_cannot_carry(bad):
    error = refuse({"metadata": {"name": bad, "namespace": "x"}})
    assert error.field == "metadata.name"
    error = refuse(
        {
            "metadata": {"name": "x", "namespace": "x", "annotations": {"kubevirt.io/qgs-socket-path": bad}},
            "spec": {"domain": {"launchSecurity": {"tdx": {}}}},
        }
    )
    assert error.field == "metadata.annotations.kubevirt.io/qgs-socket-path"


@pytest.mark.parametrize(
    "good", ["<&>\"'", "\t\n\r", "\x7f", "na\u00efve", "\U0001f600", "\ud7ff", "\ue000", "\ufffd", "]]>"]
)
def test_characters_that_need_an_escape_come_back(good):
    vmi = {"metadata": {"name": good, "namespace": "x"}, "spec": {"domain": {"chassis": {"serial": good}}}}
    root = ElementTree.fromstring(kvnode.convert(vmi, CONTEXT))
    assert root.findtext("name") == "x_" + good
    assert root.findtext("sysinfo/chassis/entry[@name='serial']") == good


def test_of_duplicate_keys_the_last_wins():
    xml = kvnode.convert(b'{"metadata":{"name":"a","namespace":"n","name":"b"}}', CONTEXT)
    assert b"<name>n_b</name>" in xml


def test_null_is_absent():
    vmi = {
        "metadata": {"name": "a", "namespace": None},
        "spec": {"domain": {"cpu": None, "devices": {"rng": None}}},
    }
    xml = kvnode.convert(vmi, CONTEXT)
    assert b"<rng" not in xml


def test_a_topology_too_large_is_refused_at_once():
    started = time.monotonic()
    for cpu in (
        {"cores": 2**32 - 1, "sockets": 2**32 - 1, "threads": 2**32 - 1},
        {"maxSockets": 2**31},
        {"cores": 20000},
    ):
        assert refuse({"spec": {"domain": {"cpu": cpu}}}).field == "spec.domain.cpu"
    assert time.monotonic() - started < 5


def test_a_hostile_key_does_not_reach_the_terminal():
    error = refuse({"spec": {"domain": {"resources": {"requests": {"cpu": {}}}}}})
    assert error.field == "spec.domain.resources.requests.cpu"
    error = refuse({"spec": {"domain": {"memory": {"guest": "1\x1b[31mGi"}}}})
    assert "\x1b" not in str(error)


@pytest.mark.parametrize(
    ("context", "field"),
    [
        ({"kvmAvailable": "yes"}, "context.kvmAvailable"),
        ({"isBlockPVC": []}, "context.isBlockPVC"),
        ({"efi": "x"}, "context.efi"),
        ({"memBalloonStatsPeriod": -1}, "context.memBalloonStatsPeriod"),
        ({"volumesDiscardIgnore": [3]}, "context.volumesDiscardIgnore[0]"),
        (3, "context"),
    ],
)
def test_a_wrong_context_names_its_key(context, field):
    with pytest.raises(kvnode.ConversionError) as caught:
        kvnode.ConverterContext(context)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("context", "field", "hint"),
    [
        ({"kvmAvailable": True, "cpuset": "0-3"}, "context.cpuset", "did you mean cpuSet?"),
        ({"isBlockPvc": {}}, "context.isBlockPvc", "did you mean isBlockPVC?"),
        ({"sound": 1}, "context.sound", "remove it"),
        ({"efi": {"codes": "/x"}}, "context.efi.codes", "did you mean code?"),
        ({"smbios": {"vendor": "x"}}, "context.smbios.vendor", "remove it"),
        ({"\x1b[31m" + "x" * 1000: 1}, "context", "remove it"),
        ({3: 1}, "context", "remove it"),
    ],
)
def test_an_unknown_key_of_the_context_is_not_passed_over(context, field, hint):
    with pytest.raises(kvnode.ConversionError) as caught:
        kvnode.convert({"metadata": {"name": "x"}}, context)
    assert caught.value.field == field
    assert caught.value.message.endswith(f"is no key of the converter context: {hint}")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


def test_names_that_somebody_gave_are_no_keys():
    names = ("isBlockPVC", "isBlockDV", "disksInfo", "hotplugVolumes", "permanentVolumes", "applyCBT", "env")
    kvnode.ConverterContext({name: {} for name in names} | {"isBlockPVC": {"kvmAvailabel": True}})


def test_without_kvm_and_emulation_there_is_no_domain():
    error = refuse({"metadata": {"name": "x"}}, {"kvmAvailable": False})
    assert error.field == "context.kvmAvailable"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
field_names = st.sampled_from(
    """
    metadata name namespace uid spec domain devices disks disk bus volumes cpu cores sockets threads memory guest
    features hyperv interfaces networks clock timer firmware bootloader efi status volumeStatus launchSecurity sev
    hugepages filesystems
    """.split()  # noqa: SIM905 - words read better
)
vmis = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-1, 70)
    | st.text(max_size=5)
    | st.sampled_from(["1Gi", "virtio", "x86_64"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(field_names, inner, max_size=6),
    max_leaves=40,
)


@given(json_values | vmis)
@settings(deadline=None)
def test_any_json_gives_xml_or_one_error(value):
    try:
        xml = kvnode.convert(json.dumps(value), CONTEXT)
    except kvnode.ConversionError as e:
        assert "\n" not in str(e)  # noqa: PT017
    else:
        ElementTree.fromstring(xml)


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_any_bytes_give_xml_or_one_error(text):
    with suppress(kvnode.ConversionError):
        kvnode.convert(text, CONTEXT)
