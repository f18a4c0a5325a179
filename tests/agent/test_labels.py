"""Labels of the node, and its heartbeat."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvnode.agent import heartbeat
from kvnode.agent.errors import AgentError
from kvnode.agent.labels.capabilities import read_hypervisor
from kvnode.agent.labels.hyperv import CAPABILITIES, capabilities
from kvnode.agent.labels.labeller import OWNED, Counter, NodeFacts, label_node, wanted_labels
from tests.agent.build import NOW

FEATURES = "<cpu><feature policy='require' name='apic'/><feature policy='disable' name='vmx'/></cpu>"
DOMAIN = """<domainCapabilities><cpu>
  <mode name='host-model'><model fallback='forbid'>EPYC</model><vendor>AMD</vendor>
    <feature policy='require' name='ss'/></mode>
  <mode name='custom'><model usable='yes'>EPYC</model><model usable='no'>Haswell</model>
    <model usable='yes'>qemu64</model><model>secret</model></mode>
</cpu><features><sev supported='yes'><maxESGuests>15</maxESGuests></sev>
  <launchSecurity supported='yes'><enum name='sectype'><value>sev</value><value>sev-snp</value></enum>
  </launchSecurity></features></domainCapabilities>"""
FILES = {"supported_features.xml": FEATURES, "virsh_domcapabilities.xml": DOMAIN}


def labels(architecture="amd64", files=FILES, **facts):
    return wanted_labels(read_hypervisor(architecture, files), NodeFacts(**facts))


class TestWanted:
    def test_of_the_hypervisor(self):
        assert set(labels()) == {
            "cpu-feature.node.kubevirt.io/apic",
            "cpu-model.node.kubevirt.io/EPYC",
            "cpu-model-migration.node.kubevirt.io/EPYC",
            "cpu-model-migration.node.kubevirt.io/Haswell",
            "host-model-cpu.node.kubevirt.io/EPYC",
            "host-model-required-features.node.kubevirt.io/ss",
            "cpu-vendor.node.kubevirt.io/AMD",
            "kubevirt.io/sev",
            "kubevirt.io/sev-es",
            "kubevirt.io/sev-snp",
        }

    def test_of_arm_little_is_known(self):
        assert set(labels("arm64", machines=("virt",))) == {
            "machine-type.node.kubevirt.io/virt",
            "kubevirt.io/sev",
            "kubevirt.io/sev-es",
            "kubevirt.io/sev-snp",
        }

    def test_realtime_and_timer(self):
        found = labels(realtime_runtime="-1\n", counter=Counter("tsc", 3000, scaling=True))
        assert found["kubevirt.io/realtime"] == "true"
        assert found["cpu-timer.node.kubevirt.io/tsc-frequency"] == "3000"
        assert found["cpu-timer.node.kubevirt.io/tsc-scalable"] == "true"

    def test_other_architectures_where_they_are_allowed(self):
        files = {**FILES, "virsh_domcapabilities_aarch64.xml": "<domainCapabilities/>"}
        assert "kubevirt.io/vm-arch-arm64" in labels(files=files, cross_architecture=True)
        assert "kubevirt.io/vm-arch-arm64" not in labels(files=files)


class TestFiles:
    @pytest.mark.parametrize("name", FILES)
    @pytest.mark.parametrize("text", [None, "", "error: no connection", "<cpu>", "<a></b>"])
    def test_a_missing_or_broken_one_is_named(self, name, text):
        files = {**FILES, name: text}
        if text is None:
            del files[name]
        with pytest.raises(AgentError, match=name):
            read_hypervisor("amd64", files)

    def test_what_a_command_prints_around_it_is_passed_over(self):
        files = {name: f"warning: x\n{text}\n\nbye\n" for name, text in FILES.items()}
        assert read_hypervisor("amd64", files) == read_hypervisor("amd64", FILES)

    @given(st.text(alphabet=st.characters(exclude_characters=">"), max_size=40))
    def test_text_that_is_no_xml_is_refused(self, text):
        with pytest.raises(AgentError, match="virsh_domcapabilities"):
            read_hypervisor("arm64", {"virsh_domcapabilities.xml": text})


class TestNode:
    HYPERVISOR = read_hypervisor("amd64", FILES)

    def node(self, labels, **annotations):
        return {"metadata": {"labels": labels, "annotations": annotations}}

    def test_old_labels_go_and_others_stay(self):
        before = {"zone": "a", "cpu-model.node.kubevirt.io/Old": "true"}
        done = label_node(self.node(before), self.HYPERVISOR, NodeFacts())
        assert done.labels["zone"] == "a"
        assert "cpu-model.node.kubevirt.io/Old" not in done.labels
        assert done.patch[0] == {"op": "test", "path": "/metadata/labels", "value": before}

    def test_a_node_that_is_right_is_not_patched(self):
        first = label_node(self.node({}), self.HYPERVISOR, NodeFacts())
        assert label_node(self.node(dict(first.labels)), self.HYPERVISOR, NodeFacts()).patch == []

    def test_a_node_that_wants_none_is_left_alone(self):
        skip = {"node-labeller.kubevirt.io/skip-node": "false"}
        before = {"cpu-model.node.kubevirt.io/Old": "true"}
        done = label_node(self.node(before, **skip), self.HYPERVISOR, NodeFacts())
        assert (done.labels, done.patch, done.warning) == (before, [], "")

    def test_a_host_model_that_nobody_is_to_use_is_warned_of(self):
        facts = NodeFacts(obsolete_models=frozenset({"EPYC"}))
        done = label_node(self.node({}), self.HYPERVISOR, facts)
        assert "EPYC" in done.warning
        assert "node-labeller.kubevirt.io/obsolete-host-model" in done.labels

    def test_a_node_without_labels_gets_them(self):
        assert label_node({"metadata": {}}, self.HYPERVISOR, NodeFacts()).patch[0]["op"] == "add"

    @given(st.dictionaries(st.text(max_size=30).filter(lambda name: not name.startswith(OWNED)), st.text()))
    def test_labels_of_others_are_kept(self, others):
        done = label_node(self.node(others), self.HYPERVISOR, NodeFacts())
        assert {name: done.labels[name] for name in others} | wanted_labels(
            self.HYPERVISOR, NodeFacts()
        ) == dict(done.labels)


class TestHyperv:
    def test_by_msrs_and_extensions(self):
        found = capabilities({0x40000003}, lambda extension: 1 if extension == 44 else 0)
        assert found == ["base", "reset"]

    def test_what_cannot_be_asked_after_is_not_there(self):
        def refuse(_extension):
            raise OSError

        everything = {one.msr for one in CAPABILITIES}
        assert capabilities(everything, refuse) == [
            "frequencies",
            "reset",
            "runtime",
            "synictimer",
            "reenlightenment",
        ]


class TestHeartbeat:
    def test_a_beat(self):
        assert heartbeat.beat(NOW, ready=True, pins_cpus=False) == {
            "metadata": {
                "labels": {
                    "kubevirt.io/schedulable": "true",
                    "cpumanager": "false",
                    "kubevirt.io/cpumanager": "false",
                },
                "annotations": {"kubevirt.io/heartbeat": "2024-06-01T12:00:00Z"},
            }
        }

    @pytest.mark.parametrize(
        ("state", "pins"),
        [
            (None, False),
            ("", False),
            ("[]", False),
            ('{"policyName":"none"}', False),
            ('{"policyName":"static"}', True),
        ],
    )
    def test_the_cpu_managers_policy(self, state, pins):
        assert heartbeat.has_static_cpu_manager(state) is pins

    @given(st.integers())
    def test_nodes_do_not_beat_together(self, seed):
        assert 60 <= heartbeat.next_interval(random.Random(seed)) <= 132  # noqa: S311
