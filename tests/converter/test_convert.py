"""The public face of the converter."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import kvnode

VMI = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"domain": {"memory": {"guest": "1Gi"}}}}
CONTEXT = {"kvmAvailable": True}


def test_every_form_of_input_gives_the_same_domain():
    text = json.dumps(VMI)
    expected = kvnode.convert(text.encode(), CONTEXT)
    assert expected.startswith(b'<domain type="kvm"')
    for form in (text, VMI, bytearray(text.encode()), memoryview(text.encode())):
        assert kvnode.convert(form, kvnode.ConverterContext(CONTEXT)) == expected


def test_the_input_is_left_as_it_was():
    before = json.dumps(VMI)
    kvnode.convert(VMI, CONTEXT)
    assert json.dumps(VMI) == before


def test_a_conversion_leaves_nothing_behind_for_the_next():
    context = kvnode.ConverterContext(CONTEXT)
    clean = kvnode.convert(VMI, context)
    rich = {
        "metadata": {"name": "x", "namespace": "y", "annotations": {"kubevirt.io/ignitiondata": "ignition"}},
        "spec": {
            "domain": {
                "cpu": {"cores": 4},
                "launchSecurity": {"sev": {}},
                "memory": {"guest": "2Gi", "maxGuest": "4Gi"},
            }
        },
    }
    kvnode.convert(rich, context)
    with pytest.raises(kvnode.ConversionError):
        kvnode.convert({"metadata": {"name": 1}}, context)
    with pytest.raises(kvnode.ConversionError):
        kvnode.convert({"metadata": {"name": "\x01"}}, context)
    assert kvnode.convert(VMI, context) == clean


class TestMany:
    def vmis(self, n):
        return [
            json.dumps({**VMI, "metadata": {"name": f"vm-{i}", "namespace": "n"}}).encode() for i in range(n)
        ]

    @pytest.mark.parametrize("threads", [1, 2, 5, 10**9])
    @pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 500])
    def test_each_in_its_place(self, n, threads):
        vmis = self.vmis(n)
        assert kvnode.convert_many(iter(vmis), CONTEXT, threads=threads) == [
            kvnode.convert(v, CONTEXT) for v in vmis
        ]

    def test_the_first_error_is_raised_with_its_index(self):
        vmis = self.vmis(100)
        vmis[40] = b'{"metadata":{"name":1}}'
        vmis[70] = b"{"
        with pytest.raises(kvnode.ConversionError) as caught:
            kvnode.convert_many(vmis, CONTEXT, threads=2)
        assert caught.value.index == 40
        assert caught.value.field == "metadata.name"

    def test_errors_can_stand_among_the_results(self):
        vmis = [*self.vmis(3), b"{"]
        results = kvnode.convert_many(vmis, CONTEXT, return_errors=True)
        assert [type(r).__name__ for r in results] == ["bytes", "bytes", "bytes", "ConversionError"]

    def test_no_threads_is_refused(self):
        with pytest.raises(ValueError, match="threads"):
            kvnode.convert_many([], CONTEXT, threads=0)


def test_a_context_is_shared_by_threads():
    context = kvnode.ConverterContext(CONTEXT)
    expected = kvnode.convert(VMI, context)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: kvnode.convert(VMI, context), range(400))) == {expected}


def test_converting_bytes_imports_no_other_library():
    code = (
        "import sys, kvnode; kvnode.convert(b'{}', kvnode.ConverterContext(None)) if 0 else "
        "kvnode.ConverterContext; kvnode.convert; print([m for m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    ).stdout
    loaded = set(eval(out))  # noqa: S307 - the list that the line above printed
    assert "kvnode._fast.domain" in loaded
    assert not loaded & {
        "orjson",
        "click",
        "rich",
        "yaml",
        "lxml",
        "kvnode.spec",
        "libvirt",
        "asyncio",
        "typing_extensions",
    }
