"""The fuzzer's seeds and findings through the library: XML or one error, for each and for what is near it."""

from contextlib import suppress
from pathlib import Path
from time import thread_time
from xml.etree import ElementTree

import orjson
import pytest

import kvnode
from bench.sample import typical_context, typical_vmi

HERE = Path(__file__).parent
INPUTS = sorted([*(HERE / "corpus").iterdir(), *(HERE / "findings").glob("*")])


def outcome(source: bytes) -> str:
    """What becomes of an input of the fuzzer: a context and a VMI, with a line break between them."""
    context, _, vmi = source.partition(b"\n")
    try:
        bound = kvnode.ConverterContext(orjson.loads(context))
        xml = kvnode.convert(vmi, bound)
    except orjson.JSONDecodeError:
        return "no context"
    except kvnode.ConversionError as e:
        assert "\n" not in str(e)  # noqa: PT017 - an error is one of two right answers
        return "error"
    assert ElementTree.fromstring(xml).tag == "domain"
    return "domain"


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.name)
def test_an_input_gives_xml_or_one_error(path):
    source = path.read_bytes()
    outcome(source)
    context, _, vmi = source.partition(b"\n")
    step = max(1, len(vmi) // 40)
    for cut in range(0, len(vmi), step):
        assert outcome(context + b"\n" + vmi[:cut]) != "domain"
        for wrong in (b"\xff", b"\x00", b'"', b"9"):
            outcome(context + b"\n" + vmi[:cut] + wrong + vmi[cut + 1 :])


def test_seeds_are_what_the_fuzzer_starts_from():
    outcomes = [outcome(path.read_bytes()) for path in (HERE / "corpus").iterdir()]
    assert outcomes.count("domain") > 10


@pytest.mark.parametrize("devices", ["disks", "interfaces"])
def test_a_list_longer_than_any_machine_takes_is_refused(devices):
    source = b'{"spec":{"domain":{"devices":{"%s":[%s]}}}}' % (devices.encode(), b",".join([b"{}"] * 65_537))
    context = kvnode.ConverterContext({"kvmAvailable": True})
    with pytest.raises(kvnode.ConversionError) as caught:
        kvnode.convert(source, context)
    assert caught.value.field == f"spec.domain.devices.{devices}"
    with suppress(kvnode.ConversionError):
        assert kvnode.convert(b'{"metadata":{"name":"a","namespace":"b"}}', context).startswith(b"<domain")


def best_time(disks: int) -> float:
    context = kvnode.ConverterContext(typical_context())
    source = orjson.dumps(typical_vmi(disks))
    best = 1e9
    for _ in range(7):
        start = thread_time()
        kvnode.convert(source, context)
        best = min(best, thread_time() - start)
    return best


def test_thousands_of_disks_take_linear_time():
    # Sixteen times as many disks; quadratic would be 256 times the time. Memory fresh from the kernel, which only the
    # larger one takes, is five times at most.
    assert best_time(16_000) < 130 * best_time(1_000)
