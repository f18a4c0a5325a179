"""The benchmarks by themselves, for pytest-benchmark: `make bench`, or `pytest bench --benchmark-only -k ...`."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest

import kvnode
from bench.plain import plain_domain
from bench.sample import bound, reference_cases, typical_context, typical_vmi

Benchmark = Callable[..., object]
CASES = reference_cases()
SIZES = (1, 2, 4, 8, 16, 32, 64)


@pytest.mark.benchmark(group="reference cases")
def test_convert(benchmark: Benchmark) -> None:
    cases = bound(CASES)

    def work() -> None:
        for vmi, context in cases:
            kvnode.convert(vmi, context)

    benchmark(work)


@pytest.mark.benchmark(group="reference cases")
def test_orjson_loads(benchmark: Benchmark) -> None:
    def work() -> None:
        for vmi, _ in CASES:
            orjson.loads(vmi)

    benchmark(work)


@pytest.mark.benchmark(group="contexts of the reference cases")
def test_build_contexts(benchmark: Benchmark) -> None:
    def work() -> None:
        for _, context in CASES:
            kvnode.ConverterContext(context)

    benchmark(work)


@pytest.mark.benchmark(group="a typical VMI, 4 disks")
def test_convert_typical(benchmark: Benchmark) -> None:
    vmi, context = orjson.dumps(typical_vmi(4)), kvnode.ConverterContext(typical_context())
    benchmark(kvnode.convert, vmi, context)


@pytest.mark.benchmark(group="a typical VMI, 4 disks")
def test_plain_python_typical(benchmark: Benchmark) -> None:
    benchmark(plain_domain, orjson.dumps(typical_vmi(4)), typical_context())


@pytest.mark.benchmark(group="by disks")
@pytest.mark.parametrize("disks", [*SIZES, 10_000])
def test_convert_disks(benchmark: Benchmark, disks: int) -> None:
    vmi, context = orjson.dumps(typical_vmi(disks)), kvnode.ConverterContext(typical_context())
    benchmark(kvnode.convert, vmi, context)


@pytest.mark.benchmark(group="convert_many, 4000 typical VMIs")
@pytest.mark.parametrize("threads", [1, 2])
def test_convert_many(benchmark: Benchmark, threads: int) -> None:
    vmis = [orjson.dumps(typical_vmi(1 + i % 4, f"web-{i}")) for i in range(4000)]
    context = kvnode.ConverterContext(typical_context())
    benchmark(kvnode.convert_many, vmis, context, threads=threads)
