"""libvirt's XML as the JSON of a Domain."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.virt.domain_json import (
    DomainFormatError,
    decode_domain,
    encode_domain,
    make_metadata,
    make_status,
    new_domain,
    read_spec,
    split_name,
)


def spec_of(inner: str = "", attributes: str = "type='kvm'") -> dict:
    return read_spec(f"<domain {attributes}>{inner}</domain>")


def disk_of(inner: str) -> dict:
    return spec_of(f"<devices><disk device='disk' type='file'>{inner}</disk></devices>")["Devices"]["Disks"][
        0
    ]


class TestReadSpec:
    def test_what_is_not_there_is_zero_or_null(self):
        spec = spec_of()
        assert spec["Type"] == "kvm"
        assert spec["Name"] == ""
        assert spec["Memory"] == {"Value": 0, "Unit": ""}
        assert spec["CurrentMemory"] is None
        assert spec["Devices"]["Disks"] is None

    def test_values_come_from_attributes_elements_and_text(self):
        spec = spec_of("<name>ns_vm</name><memory unit='KiB'>1024</memory><vcpu placement='static'>4</vcpu>")
        assert spec["Name"] == "ns_vm"
        assert spec["Memory"] == {"Value": 1024, "Unit": "KiB"}
        assert spec["VCPU"] == {"Placement": "static", "CPUs": 4}

    def test_the_elements_own_name_is_kept_where_go_keeps_it(self):
        assert spec_of()["XMLName"] == {"Space": "", "Local": "domain"}
        devices = spec_of("<devices><interface type='ethernet'/></devices>")["Devices"]
        assert devices["Interfaces"][0]["XMLName"] == {"Space": "", "Local": "interface"}

    def test_repeated_elements_make_a_list_in_their_order(self):
        timers = spec_of("<clock offset='utc'><timer name='rtc'/><timer name='pit'/></clock>")["Clock"][
            "Timer"
        ]
        assert [timer["Name"] for timer in timers] == ["rtc", "pit"]

    def test_an_element_that_comes_again_is_read_into_the_same_value(self):
        memory = spec_of("<memory unit='KiB'>1</memory><memory>2</memory>")["Memory"]
        assert memory == {"Value": 2, "Unit": "KiB"}

    def test_entries_within_a_wrapping_element(self):
        spec = spec_of("<sysinfo type='smbios'><system><entry name='sku'/></system><bios/></sysinfo>")
        assert spec["SysInfo"]["System"] == [{"Name": "sku", "Value": ""}]
        assert spec["SysInfo"]["BIOS"] is None

    def test_an_empty_element_is_a_pointer_to_nothing_set(self):
        assert spec_of("<features><acpi/></features>")["Features"]["ACPI"] == {}

    @pytest.mark.parametrize(
        ("name", "alias"),
        [
            ("ua-disk0", {"Name": "disk0", "UserDefined": True}),
            ("virtio-disk0", {"Name": "virtio-disk0", "UserDefined": False}),
            ("ua-", {"Name": "", "UserDefined": True}),
        ],
    )
    def test_a_users_alias_is_parted_from_libvirts_prefix(self, name, alias):
        assert disk_of(f"<alias name='{name}'/>")["Alias"] == alias

    def test_a_source_may_hold_a_store_with_a_source(self):
        source = disk_of("<source file='a'><dataStore type='file'><source file='b'/></dataStore></source>")[
            "Source"
        ]
        assert source["DataStore"]["Source"]["File"] == "b"
        assert source["DataStore"]["Source"]["DataStore"] is None

    def test_namespaced_parts_are_passed_over_but_for_kubevirts_own(self):
        spec = spec_of(
            "<q:commandline><q:arg value='-x'/></q:commandline>"
            "<metadata><kubevirt xmlns='http://kubevirt.io'><uid>u-1</uid></kubevirt></metadata>",
            "type='kvm' xmlns:q='http://libvirt.org/schemas/domain/qemu/1.0'",
        )
        assert spec["QEMUCmd"] is None
        assert spec["XmlNS"] == ""
        assert spec["Metadata"]["KubeVirt"]["UID"] == "u-1"

    def test_metadata_without_its_namespace_is_not_kubevirts(self):
        spec = spec_of("<metadata><kubevirt><uid>u-1</uid></kubevirt></metadata>")
        assert spec["Metadata"]["KubeVirt"]["UID"] == ""

    def test_times_become_utc_to_the_second(self):
        spec = spec_of(
            "<metadata><kubevirt xmlns='http://kubevirt.io'><graceperiod>"
            "<deletionGracePeriodSeconds>30</deletionGracePeriodSeconds>"
            "<deletionTimestamp>2024-05-06T09:08:07.123+02:00</deletionTimestamp>"
            "<markedForGracefulShutdown>true</markedForGracefulShutdown>"
            "</graceperiod></kubevirt></metadata>"
        )
        assert spec["Metadata"]["KubeVirt"]["GracePeriod"] == {
            "DeletionGracePeriodSeconds": 30,
            "DeletionTimestamp": "2024-05-06T07:08:07Z",
            "MarkedForGracefulShutdown": True,
        }

    @pytest.mark.parametrize(
        ("text", "number"), [("", 0), (" 7\n", 7), ("0", 0), ("007", 7), ("4294967295", 2**32 - 1)]
    )
    def test_numbers(self, text, number):
        assert spec_of(f"<vcpu>{text}</vcpu>")["VCPU"]["CPUs"] == number

    @pytest.mark.parametrize("text", ["x", "-1", "+1", "1.0", "4294967296", " ", "1_0", "٣", "9" * 5000])
    def test_a_number_that_is_none_is_refused_with_its_place(self, text):
        with pytest.raises(DomainFormatError, match=r"domain/vcpu: must be an integer from 0 to 4294967295"):
            spec_of(f"<vcpu>{text}</vcpu>")

    @pytest.mark.parametrize(
        "xml", ["", "<domain>", "no xml", "<capabilities/>", "<domain>\0</domain>", b"\xff\xfe<"]
    )
    def test_what_is_no_domain_is_refused(self, xml):
        with pytest.raises(DomainFormatError):
            read_spec(xml)

    def test_a_bomb_of_entities_is_refused(self):
        entities = "<!ENTITY e0 'xxxxxxxxxx'>" + "".join(
            f"<!ENTITY e{i} '{f'&e{i - 1};' * 10}'>" for i in range(1, 12)
        )
        with pytest.raises(DomainFormatError):
            read_spec(f"<!DOCTYPE domain [{entities}]><domain><name>&e11;</name></domain>")


class TestDomain:
    def test_a_launchers_domain(self):
        domain = new_domain(
            "ns",
            "vm",
            spec=spec_of("<name>ns_vm</name>"),
            status=make_status(Status="Running", Reason="Unknown"),
            metadata=make_metadata(UID="u-1"),
        )
        text = encode_domain(domain)
        assert text.startswith(
            '{"kind":"Domain","apiVersion":"1.2.2","ObjectMeta":{"name":"vm","namespace":"ns"},'
            '"Spec":{"XMLName":{"Space":"","Local":"domain"},"Type":"kvm","XmlNS":"","Name":"ns_vm",'
        )
        assert '"Metadata":{"KubeVirt":{"UID":"u-1","GracePeriod":null,' in text
        assert '"Status":{"Status":"Running","Reason":"Unknown","Interfaces":null,' in text

    def test_the_launchers_metadata_replaces_what_the_xml_had(self):
        spec = spec_of("<metadata><kubevirt xmlns='http://kubevirt.io'><uid>old</uid></kubevirt></metadata>")
        domain = new_domain("ns", "vm", spec=spec, metadata=make_metadata(UID="new"))
        assert domain["Spec"]["Metadata"]["KubeVirt"]["UID"] == "new"
        assert spec["Metadata"]["KubeVirt"]["UID"] == "old"

    def test_a_domain_that_goes(self):
        domain = new_domain("ns", "vm", uid="u-1", deletion_timestamp="2024-01-02T03:04:05Z")
        meta = json.loads(encode_domain(domain))["ObjectMeta"]
        assert meta == {
            "name": "vm",
            "namespace": "ns",
            "uid": "u-1",
            "deletionTimestamp": "2024-01-02T03:04:05Z",
        }

    def test_what_html_and_javascript_stumble_over_is_escaped(self):
        text = encode_domain(new_domain("ns", '<&>\u2028é"\\\n\x01'))
        assert '"name":"\\u003c\\u0026\\u003e\\u2028é\\"\\\\\\n\\u0001"' in text

    def test_an_unknown_field_is_refused(self):
        with pytest.raises(TypeError, match="no field Sttus"):
            make_status(Sttus="Running")

    @pytest.mark.parametrize(
        ("domain", "parts"), [("ns_vm", ("ns", "vm")), ("ns_a_b", ("ns", "a_b")), ("_vm", ("", "vm"))]
    )
    def test_a_domains_name_is_parted_at_the_first_underscore(self, domain, parts):
        assert split_name(domain) == parts

    def test_a_domains_name_without_underscore_is_refused(self):
        with pytest.raises(ValueError, match="NAMESPACE_NAME"):
            split_name("vm")


class TestDecode:
    def test_names_must_match_in_every_letter(self):
        domain = decode_domain('{"objectMeta":{"name":"a"},"Spec":{"name":"x","Name":"y"},"Future":1}')
        assert domain["ObjectMeta"]["name"] == ""
        assert domain["Spec"]["Name"] == "y"

    def test_null_is_as_good_as_absent(self):
        assert decode_domain('{"ObjectMeta":null,"Spec":{"Memory":null}}') == decode_domain("{}")

    def test_null_for_the_whole_is_an_empty_domain(self):
        assert decode_domain("null") == decode_domain("{}")

    def test_an_empty_list_is_not_null(self):
        domain = decode_domain('{"Status":{"Interfaces":[]}}')
        assert '"Interfaces":[]' in encode_domain(domain)

    def test_a_pointer_to_false_is_written_though_empty_values_are_not(self):
        text = '{"ObjectMeta":{"ownerReferences":[{"apiVersion":"","kind":"","name":"","uid":"","controller":false}]}}'
        assert '"controller":false' in encode_domain(decode_domain(text))

    @pytest.mark.parametrize(
        ("text", "field"),
        [
            ('{"Spec":{"Memory":{"Value":1.0}}}', "Spec.Memory.Value: must be an integer"),
            ('{"Spec":{"Memory":{"Value":-1}}}', "Spec.Memory.Value: must be an integer"),
            ('{"Spec":{"Memory":{"Value":true}}}', "Spec.Memory.Value: must be an integer"),
            ('{"Spec":{"Name":1}}', "Spec.Name: must be a string"),
            ('{"Spec":[]}', "Spec: must be an object"),
            ('{"Spec":{"Devices":{"Disks":{}}}}', "Spec.Devices.Disks: must be a list"),
            ('{"Spec":{"Devices":{"Disks":[1]}}}', r"Spec.Devices.Disks\[0\]: must be an object"),
            ('{"ObjectMeta":{"deletionTimestamp":"soon"}}', "ObjectMeta.deletionTimestamp: must be a time"),
            ('{"ObjectMeta":{"labels":{"a":1}}}', "ObjectMeta.labels: must be a string"),
            ("{} x", "is not JSON"),
            ("", "is not JSON"),
            ('{"Status":NaN}', "is not JSON"),
            ("[" * 100_000, "is nested too deep|is not JSON"),
        ],
    )
    def test_what_does_not_fit_is_refused_with_its_place(self, text, field):
        with pytest.raises(DomainFormatError, match=field):
            decode_domain(text)

    def test_half_a_pair_of_surrogates_is_replaced(self):
        domain = decode_domain('{"Spec":{"Name":"a\\ud800b"}}')
        assert domain["Spec"]["Name"] == "a\ufffdb"
        encode_domain(domain).encode()


WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=8)


@given(
    name=WORDS,
    labels=st.dictionaries(WORDS, WORDS, max_size=3),
    memory=st.integers(0, 2**64 - 1),
    disks=st.none() | st.lists(st.fixed_dictionaries({"Serial": WORDS, "Model": WORDS}), max_size=2),
)
def test_a_domain_comes_back_as_it_was_written(name, labels, memory, disks):
    plain = {
        "ObjectMeta": {"name": name, "labels": labels},
        "Spec": {"Memory": {"Value": memory}, "Devices": {"Disks": disks}},
    }
    text = encode_domain(decode_domain(json.dumps(plain)))
    assert encode_domain(decode_domain(text)) == text
    read = json.loads(text)
    assert read["Spec"]["Memory"]["Value"] == memory
    assert read["ObjectMeta"].get("labels", {}) == labels


@given(st.text(max_size=40) | st.binary(max_size=40))
def test_hostile_bytes_are_read_or_refused(data):
    for read in (read_spec, decode_domain):
        with contextlib.suppress(DomainFormatError):
            assert read(data)


@pytest.mark.parametrize(
    "time",
    ["2024-13-01T00:00:00Z", "0000-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "2024-01-01", "٢٠٢٤"],
)
def test_a_time_that_is_none_is_refused(time):
    with pytest.raises(DomainFormatError, match="must be a time such as"):
        decode_domain(json.dumps({"ObjectMeta": {"creationTimestamp": time}}))
