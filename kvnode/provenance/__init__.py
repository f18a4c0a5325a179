"""Where a domain comes from: `explain` names the field behind each line, `diff` what a change of the fields
changes.

Both take their answers from conversions themselves, so that they cannot disagree with what the converter
does.
"""

from kvnode.provenance.explanation import Explanation, Kind, Line, Source, explain

__all__ = ["Explanation", "Kind", "Line", "Source", "explain"]
