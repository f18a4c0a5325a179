"""Where a domain comes from: `explain` names the field behind each line, `diff` what changed fields change.

Both take their answers from conversions themselves, so that they cannot disagree with what the converter
does.
"""

from kvnode.provenance.comparison import Change, Comparison, FieldChange, diff
from kvnode.provenance.explanation import Explanation, Kind, Line, Source, explain

__all__ = [
    "Change",
    "Comparison",
    "Explanation",
    "FieldChange",
    "Kind",
    "Line",
    "Source",
    "diff",
    "explain",
]
