"""The runner: choosing, comparing, counting."""

from __future__ import annotations

import json
import lzma
import sys
import types

import pytest

from tests.reference import better
from tests.reference.__main__ import main
from tests.reference.better import Rule, reason_for
from tests.reference.common import Case, Outcome, differences, files_of, load
from tests.reference.parts import later, part_of
from tests.reference.runner import is_kind, score


def case(group="toy", line=1, **data):
    return Case(group, line, data)


class TestDifferences:
    @pytest.mark.parametrize("value", [None, True, 1, 1.5, "x", [], {}, {"a": [1, {"b": None}]}])
    def test_none_between_equals(self, value):
        assert differences(value, json.loads(json.dumps(value))) == []

    @pytest.mark.parametrize(
        ("want", "got"), [(True, 1), (1, 1.0), (0, False), ("", None), ([], {}), ([], None)]
    )
    def test_what_python_takes_for_equal_is_not(self, want, got):
        assert len(differences(want, got)) == 1

    def test_each_is_named_by_its_path(self):
        want = {"a": [1, 2], "b": 1, "c": {"d": 1}}
        got = {"a": [1], "c": {"d": 2}, "e": 0}
        assert differences(want, got) == [
            ".a: expected 2 items, got 1",
            ".b: missing, expected 1",
            ".c.d: expected 1, got 2",
            ".e: unexpected 0",
        ]

    def test_long_texts_are_shown_where_they_part(self):
        (line,) = differences("x" * 200 + "a", "x" * 200 + "b")
        assert "at character 200" in line

    def test_the_order_of_keys_does_not_count(self):
        assert differences({"a": 1, "b": 2}, {"b": 2, "a": 1}) == []


class TestCases:
    def test_a_case_is_named_by_its_id_or_its_line(self):
        assert case(id="d1").id == "d1"
        assert case(line=7).id == "toy:7"

    @pytest.mark.parametrize("name", ["toy:7", "toy.jsonl:7", "toy.jsonl.xz:7"])
    def test_a_line_is_found_by_any_of_the_files_names(self, name):
        assert case(line=7).answers_to(name)
        assert not case(line=8).answers_to(name)
        assert not case(line=7, id="d1").answers_to(name)

    def test_files_packed_and_plain(self, tmp_path):
        (tmp_path / "one").mkdir()
        (tmp_path / "two").mkdir()
        (tmp_path / "one" / "a.jsonl").write_text('{"n": 1}\n\n{"n": 2}\n')
        with lzma.open(tmp_path / "two" / "b.jsonl.xz", "wt") as file:
            file.write('{"n": 3}\n')
        (tmp_path / "two" / "README.md").write_text("")
        files = files_of(tmp_path)
        assert list(files) == ["a", "b"]
        assert [(c.id, c.data["n"]) for g, f in files.items() for c in load(g, f)] == [
            ("a:1", 1),
            ("a:3", 2),
            ("b:1", 3),
        ]

    def test_two_files_of_a_group_are_refused(self, tmp_path):
        (tmp_path / "one").mkdir()
        (tmp_path / "one" / "a.jsonl").write_text("")
        (tmp_path / "one" / "a.jsonl.xz").write_bytes(b"")
        with pytest.raises(ValueError, match="the same group"):
            files_of(tmp_path)

    def test_a_kind_is_looked_for_in_any_case_of_letters(self):
        assert is_kind(case(via="NewController"), "newcon")
        assert is_kind(case(rpc="GetDomain"), "domain")
        assert not is_kind(case(note="domain", rpc=None), "domain")

    @pytest.mark.parametrize(
        ("one", "part"),
        [
            (case("wire"), "launcher"),
            (case("net", kind="dhcp4-options"), "launcher"),
            (case("net", kind="setup"), "agent"),
            (case("payloads", field="VMI.vmiJson"), "launcher"),
            (case("payloads", field="(version negotiation)"), "launcher"),
            (case("payloads", field="(server behaviour)"), "agent"),
            (case("payloads", field="(not on the wire: client-side result)"), "agent"),
            (case("vm_status"), "controllers"),
            (case("unheard_of"), None),
        ],
    )
    def test_who_needs_it(self, one, part):
        assert part_of(one) == part

    def test_what_is_not_asked_for_yet(self):
        typed = {"vm": {"spec": {"instancetype": {"name": "small"}}}}
        assert later(case("start", input=typed)) == "instance types"
        assert later(case("vm", input=typed)) == ""
        assert later(case("start", input={"vm": None})) == ""
        assert later(case("migration_sync")) == "migration"


class TestScore:
    def test_each_kind_of_outcome_is_counted(self, monkeypatch):
        rule = Rule("toy", "a needless retry", lambda _case, want, got: want == got + 1)
        monkeypatch.setattr(better, "RULES", (rule,))

        def run(one):
            match one.data["do"]:
                case "agree":
                    return Outcome.of([1], [1], {"migrationProxy": 2})
                case "better":
                    return Outcome.of(2, 1)
                case "differ":
                    return Outcome.of(1, 5)
                case "missing":
                    return Outcome.missing("hot-plug")
                case "unwritten":
                    raise NotImplementedError
                case _:
                    raise RuntimeError("boom")

        actions = ["agree", "agree", "better", "differ", "missing", "unwritten", "crash"]
        total = score([case(do=action) for action in actions], run)
        assert total.line("toy") == (
            "toy: 2 agree, 1 better, 2 differ, 2 not-yet (left out of both sides: 4 migrationProxy)"
        )
        assert total.better == {"a needless retry": 1}
        assert total.differ[1][1] == ["crashed: RuntimeError: boom"]
        assert not total.good

    def test_a_group_without_a_module_is_not_yet(self):
        total = score([case()], None)
        assert total.not_yet.total() == 1
        assert not total.good

    def test_later_is_no_failure(self):
        total = score([case("migration_sync")], None)
        assert total.good
        assert total.line("migration_sync").endswith("0 not-yet, 1 later")

    def test_a_rule_of_another_group_or_one_that_fails_does_not_recognise(self):
        rules = (Rule("other", "x", lambda *_: True), Rule("toy", "y", lambda one, *_: one.data["none"]))
        assert reason_for(case(), 1, 2, rules) == ""


class TestCommand:
    @pytest.fixture
    def directory(self, tmp_path, monkeypatch):
        module = types.ModuleType("tests.reference.groups.toy")
        module.run = lambda one: Outcome.of(one.data["want"], one.data["got"])
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr("logging.disable", lambda _level: None)
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "toy.jsonl").write_text(
            '{"kind": "even", "want": 2, "got": 2}\n{"kind": "odd", "want": 1, "got": 3}\n'
        )
        return tmp_path

    @pytest.mark.parametrize(
        ("options", "status", "line"),
        [
            ([], 1, "toy: 1 agree, 0 better, 1 differ, 0 not-yet"),
            (["toy", "--kind", "EVEN"], 0, "toy: 1 agree, 0 better, 0 differ, 0 not-yet"),
            (["--only", "toy:2"], 1, "toy: 0 agree, 0 better, 1 differ, 0 not-yet"),
        ],
    )
    def test_scores(self, directory, capsys, options, status, line):
        assert main([*options, "--dir", str(directory)]) == status
        assert capsys.readouterr().out.splitlines()[-1] == line

    def test_a_differing_case_is_shown(self, directory, capsys):
        main(["--dir", str(directory), "--show", "1"])
        assert "toy toy:2:\n    : expected 1, got 3" in capsys.readouterr().out

    @pytest.mark.parametrize("options", [["nope"], ["--for", "agent"], ["--only", "toy:9"]])
    def test_nothing_chosen_is_no_success(self, directory, capsys, options):
        assert main([*options, "--dir", str(directory)]) == 2
        assert capsys.readouterr().err.startswith("reference: no ")

    def test_no_cases(self, tmp_path, capsys):
        assert main(["--dir", str(tmp_path / "nowhere")]) == 2
        assert "no cases in" in capsys.readouterr().err
