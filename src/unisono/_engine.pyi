"""The native engine of Unisono (engine/bindings)."""

from collections.abc import Callable
from typing import Any, TypedDict

from numpy.typing import NDArray

class BuildInfo(TypedDict):
    compiler: str
    cpp_standard: int
    architecture: str
    optimised: bool
    instructions: str

class Tables(TypedDict):
    dtypes: dict[str, int]  # bytes of an element
    reductions: list[str]
    codecs: list[str]
    codec_block_elements: int
    topk_window: int
    faults: list[str]

def build_info() -> BuildInfo: ...
def tables() -> Tables: ...
def variants() -> list[str]: ...
def combine(
    reduction: str, dtype: str, out: NDArray[Any], left: NDArray[Any], right: NDArray[Any], variant: str
) -> None: ...
def combine_many(
    reduction: str,
    dtype: str,
    out: NDArray[Any],
    also: NDArray[Any] | None,
    first: NDArray[Any],
    addends: list[NDArray[Any]],
    variant: str,
) -> None: ...
def divide(dtype: str, out: NDArray[Any], array: NDArray[Any], size: int, variant: str) -> None: ...
def copy(out: NDArray[Any], array: NDArray[Any], past_caches: bool) -> None: ...
def encoded_bytes(codec: str, n: int) -> int: ...
def encode(
    codec: str, out: NDArray[Any], array: NDArray[Any], stochastic: bool, seed: int, first: int,
    variant: str,
) -> None: ...  # fmt: skip
def encode_rounding_source(
    codec: str, out: NDArray[Any], source: NDArray[Any], stochastic: bool, seed: int, first: int,
    variant: str,
) -> None: ...  # fmt: skip
def decode(codec: str, out: NDArray[Any], array: NDArray[Any], variant: str) -> None: ...
def decode_combine(
    codec: str, reduction: str, out: NDArray[Any], left: NDArray[Any], array: NDArray[Any], variant: str
) -> None: ...
def topk_bytes(n: int, k: int) -> int: ...
def encode_topk(out: NDArray[Any], array: NDArray[Any], k: int) -> None: ...
def add_topk(out: NDArray[Any], array: NDArray[Any], k: int) -> None: ...

class Program: ...

class Plan:
    @property
    def text(self) -> str: ...
    @property
    def number(self) -> int: ...

def make_program(
    instructions: bytes, operands: bytes, parts: bytes, channels: bytes, results: list[int], rounded_last: list[int],
    silent_receivers: list[int], largest_message: int, rank: int, size: int,
) -> Program: ...  # fmt: skip
def make_plan(
    program: Program, extents: bytes, segment_bytes: int, passes: int, work_bytes: int, dtype: str, reduction: str,
    divides: bool, skips_empty: bool, streams: bool, wire: str, stochastic: bool, seed: int, fingerprint: int,
    text: str,
) -> Plan: ...  # fmt: skip
def shared_bytes(size: int, depth: int, staging_bytes: int, transfer_bytes: int, tracks: int) -> int: ...
def openssl_version() -> str: ...

class Courier:
    def __init__(self, rank: int, size: int, address: str, first_port: int, last_port: int) -> None: ...
    @property
    def port(self) -> int: ...
    @property
    def transport(self) -> str: ...
    @property
    def ucx_resources(self) -> list[str]: ...
    @property
    def tls(self) -> str: ...
    def use_tls(self, certificate: str, key: str, authority: str, bytes_per_key: int) -> None: ...
    def use_ucx(self, candidates: list[str], settings: list[tuple[str, str]]) -> None: ...
    def know_peers(
        self, addresses: list[str], ports: list[int], hosts: list[str], tickets_to: list[bytes],
        tickets_from: list[bytes], certificates: list[bytes],
    ) -> None: ...  # fmt: skip
    def ask_clock(self, rank: int, timeout_s: float) -> tuple[int, int, int] | None: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...

class File:
    def __init__(self, descriptor: int) -> None: ...
    @property
    def descriptor(self) -> int: ...

class Completion:
    def done(self) -> bool: ...
    def failed(self) -> bool: ...
    def source(self) -> int: ...
    def raise_fault(self) -> None: ...

class EventLog:
    def collectives(self) -> tuple[bytes, int]: ...
    def transfers(self) -> tuple[bytes, int]: ...

class Endpoint:
    timeout_s: float
    work_type: Any
    def __init__(
        self, file: File, offset: int, rank: int, size: int, depth: int, staging_bytes: int, transfer_bytes: int,
        tracks: int, processes: list[int], spin_s: float, yield_s: float, background_spin_s: float,
        job_ranks: list[int], fault_log: File | None, courier: Courier | None, number: int, far: list[bool],
        courier_ranks: list[int], first_ranks: list[int],
    ) -> None: ...  # fmt: skip
    def fast_call(
        self, collective: int, arrays: int, default_op: str | None, method: Callable[..., Any], gpu: GpuTable
    ) -> Callable[..., Any]: ...
    def repeat(
        self, collective: int, output: Any, source: Any, op: Any, root: int, algorithm: Any, codec: Any,
        timeout_s: float, async_op: bool,
    ) -> Any: ...  # fmt: skip
    def remember(
        self, plan: Plan, collective: int, output: Any, source: Any, op: Any, root: int, algorithm: Any, codec: Any,
        part_is_input: bool,
    ) -> None: ...  # fmt: skip
    def forget_plan(self, plan: Plan) -> None: ...
    def forget(self) -> None: ...
    def run(self, plan: Plan, source: int, output: int, timeout_s: float) -> None: ...
    def start(self, plan: Plan, source: int, output: int, timeout_s: float, keeps: object) -> Completion: ...
    def transfer(
        self, sending: bool, peer: int, tag: int, data: int, count: int, dtype: str, timeout_s: float
    ) -> int: ...
    def start_transfer(
        self, sending: bool, peer: int, tag: int, data: int, count: int, dtype: str, timeout_s: float, keeps: object
    ) -> Completion: ...
    def is_done(self, completion: Completion) -> bool: ...
    def wait(self, completion: Completion, timeout_s: float) -> bool: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...
    def check_process(self) -> None: ...
    def abort(self, reason: str) -> None: ...
    def name_ranks(self, job_ranks: list[int]) -> None: ...
    def note(self) -> str: ...
    def raise_if_broken(self) -> None: ...
    @property
    def broken(self) -> bool: ...
    def reserve_space(self, size_bytes: int) -> int: ...
    def memory_in_use(self) -> int: ...
    def sent_bytes(self) -> int: ...
    def sent_far_bytes(self) -> int: ...
    def limit_rate(self, bytes_per_s: float) -> None: ...
    def start_event_log(self, capacity: int) -> EventLog: ...
    def stop_event_log(self, log: EventLog) -> None: ...

class GpuUnavailable(Exception): ...  # no driver, or none that can be used; the text says why
class GpuError(Exception): ...  # the driver refused an operation; the text names the function and the result

class GpuDevice(TypedDict):
    ordinal: int
    name: str
    uuid: str  # 32 hexadecimal digits
    multiprocessors: int
    major: int  # of the compute capability
    minor: int
    memory_bytes: int
    mps: bool
    peers: list[bool]  # by ordinal: whether this device can access the memory of that one; of itself: True

class GpuDriver:
    def __init__(self, path: str) -> None: ...
    @property
    def version(self) -> int: ...  # 13000 is 13.0
    def devices(self) -> list[GpuDevice]: ...
    def device_of(self, address: int) -> int: ...  # the ordinal of the device; -1: the address is on none

class GpuPlan:
    @property
    def text(self) -> str: ...
    @property
    def number(self) -> int: ...

class GpuEvent:
    def wait(self, stream: int) -> None: ...  # makes a stream wait, not the host
    def passed(self) -> bool: ...
    def done(self) -> bool: ...  # the same; raises a fault
    def synchronize(self, timeout_s: float) -> bool: ...  # False: the event is not over; raises a fault

class GpuStream:  # of the communicator, for asynchronous calls
    def __init__(self, endpoint: GpuEndpoint, for_messages: bool) -> None: ...
    @property
    def handle(self) -> int: ...

class GpuTable:  # the plans of calls on CUDA tensors that the fast path can repeat
    def connect(
        self, endpoint: GpuEndpoint, device: int, rank: int, current_stream: Callable[[int], int],
        report_staging: Callable[[], None],
    ) -> None: ...  # fmt: skip
    def remember(
        self, plan: GpuPlan, collective: int, output: Any, source: Any, op: Any, root: int, algorithm: Any,
        codec: Any, part_is_input: bool,
    ) -> None: ...  # fmt: skip
    def repeat(  # returns whether an equal call is known: then it was enqueued on the current stream
        self, collective: int, output: Any, source: Any, op: Any, root: int, algorithm: Any, timeout_s: float
    ) -> bool: ...
    def start(  # the same on `stream`, behind the current one; returns the event behind the call, or None
        self, collective: int, output: Any, source: Any, op: Any, root: int, algorithm: Any, timeout_s: float,
        stream: int,
    ) -> GpuEvent | None: ...  # fmt: skip
    def forget(self, plan: GpuPlan) -> None: ...
    def clear(self) -> None: ...

def gpu_board_bytes(size: int) -> int: ...  # of shared memory, to reserve at `board_offset`
def describe_gpu_calls_on_signal(signal: int, path: str) -> None: ...  # in a forked child, again

class GpuEndpoint:
    def __init__(
        self, driver: GpuDriver, endpoint: Endpoint, board_offset: int, device: int, most: int, blocks: int,
        scratch_bytes: int, kernel_mode: bool,
    ) -> None: ...  # fmt: skip
    def handles(self) -> bytes: ...
    def connect(self, all_handles: list[bytes]) -> None: ...
    def prepare(self) -> None: ...  # once all ranks have connected
    def load(self, key: str, image: bytes, shared_bytes: int) -> int: ...  # returns the blocks per multiprocessor
    def loaded(self, key: str) -> bool: ...
    def make_plan(
        self, kernel: str, program: bytes, stream_ops: bytes, blocks: int, fingerprint: int, fingerprints: list[int],
        bias_in: list[int], bias_out: list[int], input_bytes: int, output_bytes: int, text: str,
        largest_bytes: int,
    ) -> GpuPlan: ...  # fmt: skip
    def run(self, plan: GpuPlan, input: int, output: int, stream: int, timeout_s: float) -> None: ...  # noqa: A002
    def transfer(
        self, sending: bool, peer: int, tag: int, address: int, nbytes: int, dtype: str, stream: int,
        timeout_s: float,
    ) -> None: ...  # fmt: skip
    def record(self, stream: int) -> GpuEvent: ...
    def synchronize(self, timeout_s: float) -> bool: ...  # waits for all calls; False: not over; raises a fault
    def staged_buffers(self) -> int: ...
    def registered(self) -> int: ...
    def close(self) -> None: ...
    def abandon(self) -> None: ...

class SimulatedTimes(TypedDict):
    finished: bool
    events: int
    unit_end: NDArray[Any]
    unit_busy: NDArray[Any]
    start: NDArray[Any]
    end: NDArray[Any]
    leave: NDArray[Any]
    arrival: NDArray[Any]
    level: NDArray[Any]

def simulate_events(
    first: NDArray[Any],
    sender: NDArray[Any],
    step: NDArray[Any],
    sent_step: NDArray[Any],
    sends: NDArray[Any],
    busy_s: NDArray[Any],
    leaving_s: NDArray[Any],
    occupied_s: NDArray[Any],
    rendezvous_s: NDArray[Any],
    flight_s: NDArray[Any],
    room: NDArray[Any],
    room_passes: NDArray[Any],
    passes: int,
    tracks: int,
    ports: int,
    bandwidth: NDArray[Any],
    routes: NDArray[Any],
    weights: NDArray[Any],
    route: NDArray[Any],
    message_bytes: NDArray[Any],
    hops: int,
    record: bool,
    progress: Callable[[int], None] | None,
) -> SimulatedTimes: ...
