"""Measures, and writes docs/performance.md: ``python -m bench.report``."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import orjson

import kvnode
from bench import agent_page, controller_page, sections
from bench.measure import PlainThreads, Work, growth, import_cost, interleaved
from bench.plain import plain_domain
from bench.sample import COMMITTED, bound, reference_cases, reference_source, typical_context, typical_vmi

ROOT = Path(__file__).resolve().parent.parent
TEMPLATE = Path(__file__).resolve().parent / "page.md"
PAGE = ROOT / "docs" / "performance.md"
TARGET = 1.0
SIZES = (1, 2, 4, 8, 16, 32, 64, 1_000, 10_000)


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table of Markdown; the first column is text, the others figures."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def machine() -> str:
    """What this was measured on."""
    cpu = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    cores = sum(line.startswith("processor") for line in Path("/proc/cpuinfo").read_text().splitlines())
    return (
        f"{cpu}, {cores} cores, {platform.machine()}; Linux {platform.release()}; Python {platform.python_version()}, "
        f"orjson {version('orjson')}, lxml {version('lxml')}, {platform.python_compiler()}"
    )


Facts = dict[str, object]


def headline(rounds: int) -> Facts:
    """The reference cases against orjson."""
    raw = reference_cases()
    cases = bound(raw)

    def convert() -> None:
        for vmi, context in cases:
            kvnode.convert(vmi, context)

    def loads() -> None:
        for vmi, _ in cases:
            orjson.loads(vmi)

    def contexts() -> None:
        for _, context in raw:
            kvnode.ConverterContext(context)

    best = interleaved({"convert": convert, "orjson": loads, "context": contexts}, rounds)
    each = {name: f"{seconds / len(cases) * 1e6:.2f}" for name, seconds in best.items()}
    part = reference_source() == COMMITTED
    return {
        "ratio": best["convert"] / best["orjson"],
        "cases": len(cases),
        "size": sum(len(vmi) for vmi, _ in cases) / len(cases) / 1000,
        "source": "the committed part of the reference cases" if part else "the reference cases",
        "rounds": rounds,
        "headline": table(
            ["", "µs a VMI"],
            [
                ["`kvnode.convert(bytes, context)`", each["convert"]],
                ["`orjson.loads(bytes)`", each["orjson"]],
                ["beside: `kvnode.ConverterContext(mapping)`, once a context", each["context"]],
            ],
        ),
    }


def against_lxml(rounds: int) -> Facts:
    """A typical VMI against plain Python."""
    source, mapping = orjson.dumps(typical_vmi(4)), typical_context()
    context = kvnode.ConverterContext(mapping)
    works: dict[str, Work] = {
        "convert": lambda: [kvnode.convert(source, context) for _ in range(200)],
        "plain": lambda: [plain_domain(source, mapping) for _ in range(200)],
    }
    best = interleaved(works, rounds)
    return {
        "convert_typical": best["convert"] / 200 * 1e6,
        "plain_typical": best["plain"] / 200 * 1e6,
        "plain_ratio": best["plain"] / best["convert"],
    }


def by_size(rounds: int) -> Facts:
    """Typical VMIs of more and more disks."""
    context = kvnode.ConverterContext(typical_context())
    sources = {n: orjson.dumps(typical_vmi(n)) for n in SIZES}
    times = {n: 200 if n < 1000 else 1 for n in SIZES}

    def work(n: int) -> Work:
        return lambda: [kvnode.convert(sources[n], context) for _ in range(times[n])]

    best = interleaved({str(n): work(n) for n in SIZES}, rounds)
    rows = []
    for n in SIZES:
        micro = best[str(n)] / times[n] * 1e6
        rows.append([f"{n:,}", f"{len(sources[n]) / 1000:,.1f}", f"{micro:,.1f}", f"{micro / n:.2f}"])
    return {"sizes": table(["disks", "kB of JSON", "µs", "µs / disks"], rows)}


def threads(rounds: int) -> Facts:
    """convert_many on two threads, beside what the cores give."""
    vmis = [orjson.dumps(typical_vmi(1 + i % 4, f"web-{i}")) for i in range(4000)]
    context = kvnode.ConverterContext(typical_context())
    works: dict[str, Work] = {
        "1": lambda: kvnode.convert_many(vmis, context, threads=1),
        "2": lambda: kvnode.convert_many(vmis, context, threads=2),
    }
    with tempfile.TemporaryDirectory() as scratch:
        loop = PlainThreads(Path(scratch))
        best = interleaved({**works, "C": loop.run}, rounds)
    scaling, plain = best["1"] / best["2"], 2 * loop.one / loop.two
    return {
        "many": len(vmis),
        "one_thread": best["1"] / len(vmis) * 1e6,
        "two_threads": best["2"] / len(vmis) * 1e6,
        "scaling": scaling,
        "plain_scaling": plain,
        "scaling_reached": scaling / plain,
    }


def costs() -> Facts:
    """What a process pays for having the library."""
    best, median, size = import_cost()
    return {
        "import_best": best * 1000,
        "import_median": median * 1000,
        "import_size": size / 2**20,
        "growth": max(growth(100_000), 0) / 1024,
    }


SECTIONS = {
    "parsing the JSON (simdjson)": ["kv::Parser::parse"],
    "binding the input, and what follows from it": ["begin"],
    "disks": ["write_disks"],
    "CPU and its features": ["write_cpu"],
    "interfaces": ["write_interfaces"],
    "host devices, GPUs, SR-IOV": ["write_host_devices"],
    "memory and its backing": ["write_memory", "write_memory_backing"],
    "features, Hyper-V": ["write_features"],
    "sysinfo": ["write_sysinfo"],
    "clock and timers": ["write_clock"],
    "os, firmware, kernel boot": ["write_os"],
    "controllers": ["write_controllers"],
    "balloon and small devices": ["write_memballoon", "write_small_devices", "write_inputs"],
    "console, graphics": ["write_console", "write_graphics"],
    "pinning and I/O threads": ["write_pinning", "write_iothreads"],
    "filesystems, QEMU arguments, the rest": [
        *(
            "write_filesystems",
            "write_qemu_arguments",
            "write_launch_security",
            "write_reboot_policy",
            "write_name",
        ),
    ],
    "handing over: the bytes object, the workspace": ["finish", "workspace", "give_back"],
}
ACROSS = {
    "sorting members into fields (`fill`)": "kv::fill",
    "escaping and copying text (`put_escaped`)": "kv::put_escaped",
    "looking names up (`Names::find`)": "kv::Names::find",
    "quantities (`parse_quantity`)": "kv::parse_quantity",
}


def by_section() -> Facts:
    """Instructions by section and by kind of work."""
    counts = sections.count()
    if counts is None:
        return {"sections": "valgrind was not there to count instructions."}
    cases = len(reference_cases())

    def row(name: str, number: int) -> list[str]:
        return [name, f"{number / cases:,.0f}", f"{number / counts.total:.1%}"]

    sums = {name: sum(counts.inclusive.get(f, 0) for f in parts) for name, parts in SECTIONS.items()}
    rows = [row(name, number) for name, number in sorted(sums.items(), key=lambda item: -item[1])]
    across = [row(name, counts.inclusive.get(function, 0)) for name, function in ACROSS.items()]
    lines = [
        f"Instructions for the same VMIs, {counts.total / cases:,.0f} each on average. callgrind counts them, the",
        "same in every run.",
        "(It knows no AVX-512, so simdjson's share is larger here than in time.)",
        "",
        table(["section", "instructions a VMI", "share"], rows),
        "",
        "Among these, across the sections:",
        "",
        table(["work", "instructions a VMI", "share"], across),
    ]
    return {"sections": "\n".join(lines)}


def main() -> int:
    """Run the command; the answer is its exit code: 1 when converting takes longer than orjson's parse."""
    parser = argparse.ArgumentParser(prog="python -m bench.report", description=__doc__)
    parser.add_argument("--rounds", type=int, default=40, help="interleaved rounds (40)")
    args = parser.parse_args()
    few = max(5, args.rounds // 4)
    facts: Facts = {
        "machine": machine(),
        "load": os.getloadavg()[0],
        **headline(args.rounds),
        **against_lxml(few),
        **by_size(few),
    }
    facts |= {**threads(args.rounds), **costs(), **by_section()}
    page = PAGE.read_text() if PAGE.exists() else ""
    facts["agent"], facts["controller"] = agent_page.section_of(page), controller_page.section_of(page)
    PAGE.write_text(TEMPLATE.read_text().format_map(facts))
    ratio = facts["ratio"]
    assert isinstance(ratio, float)
    print(f"bench: {ratio:.2f} times orjson.loads, at most {TARGET} is the aim; see {PAGE.relative_to(ROOT)}")
    return 0 if ratio <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
