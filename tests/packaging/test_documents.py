"""What the documentation shows of the library runs as it stands."""

import doctest
import subprocess
import sys
from pathlib import Path

import kvnode

ROOT = Path(__file__).resolve().parent.parent.parent
API = ROOT / "docs" / "api.md"
GOOD = """
apiVersion: kubevirt.io/v1
kind: VirtualMachineInstance
metadata: {name: good, namespace: shop}
spec: {domain: {memory: {guest: 1Gi}, devices: {}}}
"""
BAD = """
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: bad, namespace: shop}
spec:
  template:
    metadata: {name: bad, namespace: shop}
    spec:
      domain: {memory: {guest: 1Gi}, devices: {clientPassthrough: {}, disks: [{name: a, shareable: true}]}}
      volumes: [{name: a, persistentVolumeClaim: {claimName: a}}]
"""


def test_every_example_of_the_api_reference_runs():
    result = doctest.testfile(str(API), module_relative=False, verbose=False)
    assert result.failed == 0
    assert result.attempted > 20


def test_every_public_name_is_in_the_api_reference():
    headings = [line for line in API.read_text().splitlines() if line.startswith("### ")]
    named = {heading.removeprefix("### ").partition("(")[0].strip() for heading in headings}
    assert named == set(kvnode.__all__)


def check(directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / "policy_check.py"), str(directory)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_policy_check_passes_what_keeps_the_policy(tmp_path):
    (tmp_path / "good.yaml").write_text(GOOD)
    done = check(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_policy_check_names_what_breaks_it(tmp_path):
    (tmp_path / "some.yaml").write_text(f"{GOOD}---{BAD}")
    done = check(tmp_path)
    assert done.returncode == 1
    assert done.stderr == ""
    assert "shares a disk" in done.stdout
    assert "takes USB devices of clients" in done.stdout
