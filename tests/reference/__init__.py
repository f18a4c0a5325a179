"""The reference runner: scores the project on the decisions and the wire format of KubeVirt v1.9.0.

    python -m tests.reference [GROUP ...] [--dir DIR] [--for PART] [--kind TEXT] [--only ID] [--show N]

The cases are not part of the project; DIR is the folder that holds theirs (``../shared/parity`` by
default), in folders of one file a group, ``GROUP.jsonl`` or ``GROUP.jsonl.xz``, one case a line.

How to add a group:

1. Write ``groups/GROUP.py`` with ``def run(case: Case) -> Outcome``. ``case.data`` is the line's object.
Build
   what it describes, run the project's own code over it, and return ``Outcome.of(want, got)``: the
   reference's whole answer and ours, as plain data (``str``, ``int``, ``list``, ``dict`` …), both
   normalised alike (``common.py`` helps). The runner compares them strictly: ``True`` is not ``1``, order
   in a list counts, order of a mapping's keys does not. Where bytes count, return the text.
2. A case that needs a part which is not built yet: return ``Outcome.missing("which part")``, or let the
code raise
   NotImplementedError. A case that nobody asks for yet: a rule in ``parts.py``.
3. What is taken out of both sides before comparing is given as ``left_out={"part": number}``; the runner
prints
   the sums.
4. A difference that is meant goes into ``better.py`` as a rule, never into the group module.

A group without a module counts as not-yet, an exception as a difference. The exit status is 0 only when
nothing differs and nothing is not-yet.
"""
