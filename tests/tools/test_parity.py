"""The floor under the reference scores only rises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools import parity

PRINTED = """\
  convert 12:
    /domain/cpu@mode: expected 'host-model', got None
convert: 19 of 1500 agree
quantity: 436 of 436 agree
pod: no cases in somewhere
"""


def test_scores_are_read_from_the_closing_lines() -> None:
    assert parity.parse_scores(PRINTED) == {"convert": (19, 1500), "quantity": (436, 436)}


def test_a_group_below_its_floor_or_unscored_is_named() -> None:
    scores = {"convert": (18, 1500), "quantity": (436, 436)}
    assert parity.below(scores, {"convert": 19, "quantity": 436, "defaults": 1}) == [
        "convert: 18 agree, the floor is 19",
        "defaults: 0 agree, the floor is 1",
    ]


def test_raising_never_lowers() -> None:
    scores = {"convert": (25, 1500), "quantity": (3, 436)}
    assert parity.raised(scores, {"convert": 19, "quantity": 436}) == {"convert": 25, "quantity": 436}


def test_the_committed_floor_is_well_formed() -> None:
    assert parity.read_floor(parity.FLOOR)


@pytest.fixture
def reference(tmp_path: Path) -> Path:
    (tmp_path / "parity.py").write_text("print('convert: 20 of 30 agree')\nraise SystemExit(1)\n")
    return tmp_path


@pytest.mark.parametrize(("floor", "code"), [({"convert": 20}, 0), ({"convert": 21}, 1), ({}, 0)])
def test_the_exit_code_tells(
    monkeypatch: pytest.MonkeyPatch, reference: Path, floor: dict[str, int], code: int
) -> None:
    path = reference / "floor.json"
    path.write_text(json.dumps(floor))
    monkeypatch.setattr(parity, "FLOOR", path)
    assert parity.main(["--reference", str(reference)]) == code
    assert json.loads(path.read_text()) == floor


def test_raise_writes_the_higher_score(monkeypatch: pytest.MonkeyPatch, reference: Path) -> None:
    path = reference / "floor.json"
    path.write_text('{"convert": 7, "pod": 3}')
    monkeypatch.setattr(parity, "FLOOR", path)
    assert parity.main(["--reference", str(reference), "--raise"]) == 1  # pod was not scored
    assert json.loads(path.read_text()) == {"convert": 20, "pod": 3}


def test_no_reference_set_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert parity.main(["--reference", str(tmp_path)]) == 2
    assert "no reference set there" in capsys.readouterr().err
