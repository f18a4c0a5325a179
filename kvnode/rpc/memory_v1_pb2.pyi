# mypy: disable-error-code="type-arg"
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    NO_SHARE: _ClassVar[Verdict]
    WITHIN: _ClassVar[Verdict]
    OVER: _ClassVar[Verdict]
NO_SHARE: Verdict
WITHIN: Verdict
OVER: Verdict

class MemoryReportRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class MemoryReportResponse(_message.Message):
    __slots__ = ("report",)
    REPORT_FIELD_NUMBER: _ClassVar[int]
    report: MemoryReport
    def __init__(self, report: _Optional[_Union[MemoryReport, _Mapping]] = ...) -> None: ...

class MemoryReport(_message.Message):
    __slots__ = ("namespace", "name", "domain_type", "guest_size", "guest_resident", "guest_backing", "processes", "page_tables", "page_tables_share", "overhead_used", "overhead_requested", "headroom", "verdict", "unassigned")
    NAMESPACE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_TYPE_FIELD_NUMBER: _ClassVar[int]
    GUEST_SIZE_FIELD_NUMBER: _ClassVar[int]
    GUEST_RESIDENT_FIELD_NUMBER: _ClassVar[int]
    GUEST_BACKING_FIELD_NUMBER: _ClassVar[int]
    PROCESSES_FIELD_NUMBER: _ClassVar[int]
    PAGE_TABLES_FIELD_NUMBER: _ClassVar[int]
    PAGE_TABLES_SHARE_FIELD_NUMBER: _ClassVar[int]
    OVERHEAD_USED_FIELD_NUMBER: _ClassVar[int]
    OVERHEAD_REQUESTED_FIELD_NUMBER: _ClassVar[int]
    HEADROOM_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    UNASSIGNED_FIELD_NUMBER: _ClassVar[int]
    namespace: str
    name: str
    domain_type: str
    guest_size: int
    guest_resident: int
    guest_backing: str
    processes: _containers.RepeatedCompositeFieldContainer[ProcessMemory]
    page_tables: int
    page_tables_share: int
    overhead_used: int
    overhead_requested: int
    headroom: int
    verdict: Verdict
    unassigned: _containers.RepeatedCompositeFieldContainer[OverheadTerm]
    def __init__(self, namespace: _Optional[str] = ..., name: _Optional[str] = ..., domain_type: _Optional[str] = ..., guest_size: _Optional[int] = ..., guest_resident: _Optional[int] = ..., guest_backing: _Optional[str] = ..., processes: _Optional[_Iterable[_Union[ProcessMemory, _Mapping]]] = ..., page_tables: _Optional[int] = ..., page_tables_share: _Optional[int] = ..., overhead_used: _Optional[int] = ..., overhead_requested: _Optional[int] = ..., headroom: _Optional[int] = ..., verdict: _Optional[_Union[Verdict, str]] = ..., unassigned: _Optional[_Iterable[_Union[OverheadTerm, _Mapping]]] = ...) -> None: ...

class ProcessMemory(_message.Message):
    __slots__ = ("role", "pid", "command", "resident", "proportional", "peak", "share", "terms", "verdict")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    PID_FIELD_NUMBER: _ClassVar[int]
    COMMAND_FIELD_NUMBER: _ClassVar[int]
    RESIDENT_FIELD_NUMBER: _ClassVar[int]
    PROPORTIONAL_FIELD_NUMBER: _ClassVar[int]
    PEAK_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    role: str
    pid: int
    command: str
    resident: int
    proportional: int
    peak: int
    share: int
    terms: _containers.RepeatedScalarFieldContainer[str]
    verdict: Verdict
    def __init__(self, role: _Optional[str] = ..., pid: _Optional[int] = ..., command: _Optional[str] = ..., resident: _Optional[int] = ..., proportional: _Optional[int] = ..., peak: _Optional[int] = ..., share: _Optional[int] = ..., terms: _Optional[_Iterable[str]] = ..., verdict: _Optional[_Union[Verdict, str]] = ...) -> None: ...

class OverheadTerm(_message.Message):
    __slots__ = ("name", "bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    bytes: int
    def __init__(self, name: _Optional[str] = ..., bytes: _Optional[int] = ...) -> None: ...
