"""The JSON that fields of the protocols carry, as Go writes and reads it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.virt.domain_json import DomainFormatError
from kvnode.virt.domain_json.gojson import decode, decode_many, encode, encode_many
from kvnode.virt.domain_json.scalars import DURATION
from kvnode.virt.payloads import backup, guest, kubernetes, migration, plugins, sev, stats
from kvnode.virt.payloads.events import read_domain_event
from kvnode.virt.payloads.instance import read_instance


class TestStats:
    def test_what_was_not_measured_is_said_to_be(self):
        text = encode(stats.DOMAIN_STATS, {"Name": "ns_vm", "Cpu": {"TimeSet": True, "Time": 7}})
        assert text == (
            '{"Name":"ns_vm","UUID":"","Cpu":{"TimeSet":true,"Time":7,"UserSet":false,"User":0,"SystemSet":false,'
            '"System":0},"Memory":null,"MigrateDomainJobInfo":null,"Vcpu":null,"Net":null,"Block":null,'
            '"CPUMapSet":false,"CPUMap":null,"DirtyRate":null,"Load":null}'
        )

    @pytest.mark.parametrize(
        ("number", "written"), [(0.25, "0.25"), (1.0, "1"), (0, "0"), (1e16, "1" + "0" * 16), (12.5, "12.5")]
    )
    def test_numbers_are_written_as_go_writes_them(self, number, written):
        text = encode(stats.LOAD, decode(stats.LOAD, json.dumps({"Load1mSet": True, "Load1m": number})))
        assert f'"Load1m":{written},' in text

    def test_which_cpus_each_vcpu_may_use(self):
        text = '{"CPUMapSet":true,"CPUMap":[[true,false],[]]}'
        assert decode(stats.DOMAIN_STATS, text)["CPUMap"] == [[True, False], []]

    @pytest.mark.parametrize("value", ["-1", "1.0", '"1"', "true", str(2**64)])
    def test_a_counter_takes_natural_numbers_alone(self, value):
        with pytest.raises(DomainFormatError, match=r"Cpu\.Time: must be an integer from 0"):
            decode(stats.DOMAIN_STATS, f'{{"Cpu":{{"Time":{value}}}}}')


class TestGuest:
    def test_nothing_known(self):
        assert encode(guest.AGENT_INFO, {}) == '{"os":{},"fsInfo":{"disks":null}}'

    def test_users_without_a_login_time(self):
        assert encode_many(guest.USER, [{"userName": "root"}]) == '[{"userName":"root"}]'

    @pytest.mark.parametrize(("users", "text"), [(None, "null"), ([], "[]")])
    def test_no_list_and_an_empty_one_differ(self, users, text):
        assert encode_many(guest.USER, users) == text
        assert decode_many(guest.USER, text) == users

    def test_an_object_where_a_list_must_be(self):
        with pytest.raises(DomainFormatError, match="users: must be a list"):
            decode_many(guest.USER, '{"items":[]}', "users")

    def test_names_of_another_case_are_passed_over(self):
        info = decode(guest.AGENT_INFO, '{"GuestAgentVersion":"1","hostname":"h"}')
        assert (info["guestAgentVersion"], info["hostname"]) == ("", "h")


class TestDomainEvent:
    @pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED"])
    def test_a_domain(self, kind):
        assert read_domain_event(kind, b'{"Spec":{"Name":"ns_vm"}}', b"")["Spec"]["Name"] == "ns_vm"

    def test_an_error_is_about_a_status(self):
        assert read_domain_event("ERROR", b"", b'{"message":"boom"}')["message"] == "boom"

    @pytest.mark.parametrize("kind", ["", "added", "BOOKMARK"])
    def test_other_types_are_dropped(self, kind):
        assert read_domain_event(kind, b"{}", b"") is None

    @pytest.mark.parametrize("kind", ["ADDED", "ERROR", "BOOKMARK"])
    @pytest.mark.parametrize("payloads", [(b"{", b""), (b"", b"{")])
    def test_what_is_no_json_is_refused_whatever_the_type(self, kind, payloads):
        with pytest.raises(DomainFormatError):
            read_domain_event(kind, *payloads)


class TestInstance:
    def test_what_is_missing_is_there_if_empty(self):
        for text in ("{}", "null", '{"spec":null}'):
            vmi = read_instance(text)
            assert vmi["spec"]["domain"]["devices"] == {}

    def test_unknown_fields_are_passed_over(self):
        vmi = read_instance(
            '{"metadata":{"name":"a","x":1},"future":1,"spec":{"domain":{"devices":{"x":[]}}}}'
        )
        assert vmi == {"metadata": {"name": "a"}, "spec": {"domain": {"devices": {}}}}

    def test_names_count_in_every_letter_but_for_the_spec(self):
        vmi = read_instance(
            '{"Metadata":{"name":"a"},"spec":{"TerminationGracePeriodSeconds":5,"DOMAIN":{"Memory":{"Guest":"1024Mi"}}}}'
        )
        assert vmi["metadata"] == {}
        assert vmi["spec"]["terminationGracePeriodSeconds"] == 5
        assert vmi["spec"]["domain"]["memory"] == {"guest": "1Gi"}

    def test_the_last_of_a_name_counts(self):
        assert read_instance('{"metadata":{"name":"a","name":"b"}}')["metadata"]["name"] == "b"

    def test_labels_are_no_fields(self):
        vmi = read_instance('{"metadata":{"labels":{"Any/Name":"x"}}}')
        assert vmi["metadata"]["labels"] == {"Any/Name": "x"}

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("", "is not JSON"),
            ("{} x", "is not JSON"),
            ("[]", "must be a mapping"),
            ('{"spec":{"terminationGracePeriodSeconds":"5"}}', "spec.terminationGracePeriodSeconds: must be"),
            ('{"spec":{"volumes":{}}}', "spec.volumes: must be"),
        ],
    )
    def test_what_is_none_is_refused(self, text, words):
        with pytest.raises(DomainFormatError, match=words):
            read_instance(text)


class TestOthers:
    def test_a_migrations_bandwidth_may_be_a_number(self):
        options = decode(migration.MIGRATION_OPTIONS, '{"Bandwidth":67108864}')
        assert encode(migration.MIGRATION_OPTIONS, options).startswith('{"Bandwidth":"67108864","Progr')

    def test_no_migration_options(self):
        assert encode(migration.MIGRATION_OPTIONS, decode(migration.MIGRATION_OPTIONS, "null")) == (
            '{"Bandwidth":"0","ProgressTimeout":0,"CompletionTimeoutPerGiB":0,"MaxDowntimeMs":0,"UnsafeMigration":false,'
            '"AllowAutoConverge":false,"AllowPostCopy":false,"ParallelMigrationThreads":null,'
            '"AllowWorkloadDisruption":false,"StallDetectorOptions":null,"Compression":null}'
        )

    @pytest.mark.parametrize(
        "struct", [sev.PLATFORM_INFO, sev.SECRET_OPTIONS, backup.BACKUP_OPTIONS, backup.BACKUP_CHECKPOINT]
    )
    def test_nothing_set_is_an_empty_object(self, struct):
        assert encode(struct, {}) == "{}"

    def test_an_event_as_a_launcher_sends_it(self):
        event = {
            "involvedObject": {"kind": "VirtualMachineInstance", "namespace": "ns", "name": "vm"},
            "type": "Warning",
            "reason": "IOerror",
            "message": "out of space",
        }
        assert encode(kubernetes.EVENT, event) == (
            '{"metadata":{},"involvedObject":{"kind":"VirtualMachineInstance","namespace":"ns","name":"vm"},'
            '"reason":"IOerror","message":"out of space","source":{},"firstTimestamp":null,"lastTimestamp":null,'
            '"type":"Warning","eventTime":null,"reportingComponent":"","reportingInstance":""}'
        )

    def test_an_events_time_keeps_its_microseconds(self):
        event = decode(kubernetes.EVENT, '{"eventTime":"2024-05-06T09:08:07.5+02:00"}')
        assert event["eventTime"] == "2024-05-06T07:08:07.500000Z"

    def test_a_status(self):
        status = {"status": "Failure", "message": "m"}
        assert encode(kubernetes.STATUS, status) == '{"metadata":{},"status":"Failure","message":"m"}'


class TestDuration:
    @pytest.mark.parametrize(
        ("read", "written"),
        [
            ("62s", "1m2s"),
            ("1h", "1h0m0s"),
            ("1.5h", "1h30m0s"),
            ("90m1.25s", "1h30m1.25s"),
            ("1500ms", "1.5s"),
            ("1500us", "1.5ms"),
            ("10ns", "10ns"),
            ("-5s", "-5s"),
            ("0", "0s"),
        ],
    )
    def test_read_and_written_as_go_does(self, read, written):
        assert DURATION.from_json(read) == written

    @pytest.mark.parametrize("text", ["", "5", "s", "5 s", "5d", "1h x", "9" * 30 + "h", 5, None, True])
    def test_what_is_none_is_refused(self, text):
        with pytest.raises(ValueError, match="must be a duration"):
            DURATION.from_json(text)

    @given(st.integers(0, 2**62))
    def test_what_was_written_is_read_as_the_same(self, nanoseconds):
        written = DURATION.from_json(f"{nanoseconds}ns")
        assert DURATION.from_json(written) == written

    def test_in_a_plugin(self):
        text = '[{"spec":{"domainHooks":[{"timeout":"62s"}]}}]'
        assert '"timeout":"1m2s"' in encode_many(plugins.PLUGIN, decode_many(plugins.PLUGIN, text))
