"""The fuzzer's own parts that need no compiler."""

import re

from tools.fuzz.__main__ import CORE, CORPUS, HERE, has_libfuzzer


def test_the_dictionary_has_every_field_that_the_conversion_reads():
    declared = re.findall(r"KV_FIELDS\(\w+,(.*?)\)", (CORE / "fields.hpp").read_text(), re.DOTALL)
    names = {name.strip().rstrip("_") for fields in declared for name in fields.split(",")}
    assert len(names) > 200
    dictionary = (HERE / "fields.dict").read_text()
    assert sorted(name for name in names if f'"\\"{name}\\":"' not in dictionary) == []


def test_a_compiler_that_is_not_there_has_no_libfuzzer(tmp_path):
    assert not has_libfuzzer("no-such-compiler", tmp_path)


def test_seeds_are_small():
    sizes = [seed.stat().st_size for seed in CORPUS.iterdir()]
    assert len(sizes) > 20
    assert max(sizes) < 16_384
