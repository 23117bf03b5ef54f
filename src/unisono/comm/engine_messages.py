"""The sentences of the engine's faults.

The engine describes a fault by an id and parameters (``engine/include/unisono/fault_message.hpp``); this module has
the template of every id and turns a description into a :class:`~unisono.message.Message`. Steps are numbered from 1.
"""

from __future__ import annotations

from itertools import chain
from string import Formatter
from urllib.parse import unquote

from unisono.errors import Aborted, CollectiveTimeout, CommError, Excluded, MismatchError, PeerLost, UnisonoError
from unisono.message import Message, Template, join

PREFIX = "engine."


def _fault(name: str, english: str, chinese: str) -> Template:
    """Return the template of a fault, which ends with its details and with the group, if there are any."""
    return Template(PREFIX + name, english + "{details}{group}", chinese + "{details}{group}")


# By the exception that carries the message.
FAULTS: dict[type[UnisonoError], tuple[Template, ...]] = {
    PeerLost: (
        _fault(
            "peer_ended_in_call",
            "{peer} has ended; {rank} was waiting for {waited_for} at step {step} of {call}",
            "{peer} 已结束；{rank} 当时正在 {call} 的第 {step} 步等待 {waited_for}",
        ),
        _fault(
            "peer_ended",
            "{peer} has ended; {rank} was waiting for {waited_for} (tag {tag})",
            "{peer} 已结束；{rank} 当时正在 send 或 recv（标签 {tag}）中等待 {waited_for}",
        ),
        _fault(
            "peer_ended_on_host_in_call",
            "{peer} on host {host} has ended; {rank} was waiting for {waited_for} at step {step} of {call}",
            "主机 {host} 上的 {peer} 已结束；{rank} 当时正在 {call} 的第 {step} 步等待 {waited_for}",
        ),
        _fault(
            "peer_ended_on_host",
            "{peer} on host {host} has ended; {rank} was waiting for {waited_for} (tag {tag})",
            "主机 {host} 上的 {peer} 已结束；{rank} 当时正在 send 或 recv（标签 {tag}）中等待 {waited_for}",
        ),
        _fault(
            "far_peer_lost_in_call",
            "{peer} on host {host} is lost ({reason}); {rank} was waiting for {waited_for} at step {step} of {call}",
            "主机 {host} 上的 {peer} 已失联（{reason}）；{rank} 当时正在 {call} 的第 {step} 步等待 {waited_for}",
        ),
        _fault(
            "far_peer_lost",
            "{peer} on host {host} is lost ({reason}); {rank} was waiting for {waited_for} (tag {tag})",
            "主机 {host} 上的 {peer} 已失联（{reason}）；"
            "{rank} 当时正在 send 或 recv（标签 {tag}）中等待 {waited_for}",
        ),
        _fault(
            "peer_closed_in_call",
            "{peer} has closed its communicator while {rank} is waiting for it in {call}",
            "{rank} 正在 {call} 中等待 {peer}，而 {peer} 已关闭其通信器",
        ),
        _fault(
            "peer_closed",
            "{peer} has closed its communicator while {rank} is waiting for it (tag {tag})",
            "{rank} 正在 send 或 recv（标签 {tag}）中等待 {peer}，而 {peer} 已关闭其通信器",
        ),
        _fault(
            "all_closed",
            "every other rank has closed its communicator while {rank} is waiting for a message (tag {tag})",
            "{rank} 正在等待消息（标签 {tag}），而其他 rank 均已关闭其通信器",
        ),
        _fault(
            "reporter_died",
            "a rank died while it was reporting a failure",
            "某个 rank 在报告故障时异常终止",
        ),
    ),
    CollectiveTimeout: (
        _fault(
            "timed_out_in_call",
            "{rank} timed out after {seconds} s (the timeout of the call) waiting for {peer} at step {step} of "
            "{call}",
            "{rank} 在 {call} 的第 {step} 步等待 {peer}，{seconds} 秒后超时（该调用的时限）",
        ),
        _fault(
            "timed_out",
            "{rank} timed out after {seconds} s (the timeout of the call) waiting for {peer} in send or recv (tag "
            "{tag})",
            "{rank} 在 send 或 recv（标签 {tag}）中等待 {peer}，{seconds} 秒后超时（该调用的时限）",
        ),
    ),
    MismatchError: (
        _fault(
            "call_mismatch",
            "call {number} of this communicator differs between ranks: {rank} called {own_call}; {peer} called "
            "{peer_call}. Every rank must make the same calls in the same order",
            "各 rank 在该通信器上的第 {number} 次调用不一致：{rank} 调用 {own_call}；{peer} 调用 {peer_call}。"
            "所有 rank 必须以相同的顺序进行相同的调用",
        ),
        _fault(
            "length_mismatch",
            "{peer} sent {sent} bytes to {rank}, which expects {expected} bytes at step {step}: "
            "the sending and the receiving rank must name the same length",
            "{peer} 向 {rank} 发送了 {sent} 字节，而 {rank} 在第 {step} 步应接收 {expected} 字节："
            "发送方与接收方给出的长度必须相同",
        ),
        _fault(
            "transfer_mismatch",
            "{peer} sends {sent_count} {sent_dtype} elements with tag {tag}; {rank} receives {count} {dtype} "
            "elements: both sides of a transfer must name the same type and number of elements",
            "{peer} 发送 {sent_count} 个 {sent_dtype} 元素（标签 {tag}）；{rank} 接收 {count} 个 {dtype} 元素："
            "传输双方的元素类型和个数必须相同",
        ),
        _fault(
            "tag_mismatch",
            "{peer} sends a message with tag {sent_tag}; {rank} receives one with tag {tag}: between GPUs, the "
            "messages of two ranks are received in the order in which they are sent",
            "{peer} 发送的消息带有标签 {sent_tag}；{rank} 接收的标签为 {tag}："
            "GPU 之间，两个 rank 的消息按发送顺序接收",
        ),
    ),
    Aborted: (
        _fault("aborted", "{rank} aborted: {reason}", "{rank} 中止：{reason}"),
        _fault("interrupted", "{rank} was interrupted", "{rank} 被中断"),
        _fault(
            "shrinks",
            "{rank} called shrink: call it on every rank, to continue with the ranks that are left",
            "{rank} 调用了 shrink：请在每个 rank 上调用它，以便与剩余的 rank 继续运行",
        ),
    ),
    Excluded: (
        _fault(
            "excluded",
            "{rank} is excluded: it did not call shrink in time, and ranks {survivors} of the job continue "
            "without it; end this process",
            "{rank} 已被排除：它没有及时调用 shrink，作业的 rank {survivors} 已在没有它的情况下继续运行；"
            "请结束此进程",
        ),
    ),
    CommError: (
        _fault(
            "no_shared_memory",
            "{rank}: no shared memory for {bytes} bytes: {reason}; connect with smaller staging_bytes, or raise the "
            "limits on memory and file size (ulimit -v, ulimit -f)",
            "{rank}：无法分配 {bytes} 字节的共享内存：{reason}；请在 connect 时使用较小的 staging_bytes，"
            "或放宽内存和文件大小的限制（ulimit -v、ulimit -f）",
        ),
        _fault(
            "no_address_space",
            "{rank}: no address space for {bytes} bytes: {reason}; connect with smaller staging_bytes, or raise the "
            "limits on memory and file size (ulimit -v, ulimit -f)",
            "{rank}：无法分配 {bytes} 字节的地址空间：{reason}；请在 connect 时使用较小的 staging_bytes，"
            "或放宽内存和文件大小的限制（ulimit -v、ulimit -f）",
        ),
        _fault(
            "no_memory_for_message",
            "{rank} has no memory for an unexpected message of {count} {dtype} elements (tag {tag}) from {peer}; "
            "receive it earlier",
            "{rank} 没有足够的内存保存来自 {peer} 的非预期消息（{count} 个 {dtype} 元素，标签 {tag}）；"
            "请尽早接收该消息",
        ),
        _fault(
            "no_thread",
            "{rank} could not start a thread for asynchronous calls: {reason}; raise the limit on processes "
            "(ulimit -u, or the pids limit of the container) or on address space (ulimit -v)",
            "{rank} 无法为异步调用启动线程：{reason}；请放宽进程数的限制（ulimit -u，或容器的 pids "
            "限制）或地址空间的限制（ulimit -v）",
        ),
        _fault(
            "gpu_failed",
            "{rank}: the CUDA driver reports {reason} in {operation}",
            "{rank}：CUDA 驱动在 {operation} 中报告 {reason}",
        ),
    ),
}
DETAILS = (
    Template(PREFIX + "waits", "{rank} is waiting for {peer} at step {step}", "{rank} 正在第 {step} 步等待 {peer}"),
    Template(
        PREFIX + "waits_in_transfer",
        "{rank} is waiting for {peer} in send or recv",
        "{rank} 正在 send 或 recv 中等待 {peer}",
    ),
    Template(
        PREFIX + "waits_elsewhere",
        "{rank} is waiting for {peer} in another communicator",
        "{rank} 正在另一个通信器中等待 {peer}",
    ),
    Template(
        PREFIX + "stopped",
        "{rank} is stopped, by a signal or a debugger",
        "{rank} 已被信号或调试器暂停",
    ),
    Template(
        PREFIX + "waits_for_any", "{rank} is waiting for a message from any rank", "{rank} 正在等待任意 rank 的消息"
    ),
    Template(
        PREFIX + "not_entered",
        "{rank} has not entered this call (it has made {made} of {expected} calls)",
        "{rank} 尚未进入此次调用（已完成 {expected} 次调用中的 {made} 次）",
    ),
    Template(
        PREFIX + "busy_in_call",
        "{rank} is in the call but is not waiting for any rank: it may be stopped, or very slow",
        "{rank} 已进入此次调用，但没有在等待任何 rank：它可能已停止，或运行得非常慢",
    ),
    Template(
        PREFIX + "busy",
        "{rank} is not waiting for any rank: it may be stopped, very slow, or busy with something else",
        "{rank} 没有在等待任何 rank：它可能已停止、运行得非常慢，或正忙于其他工作",
    ),
    Template(
        PREFIX + "no_answer",
        "{rank} on host {host} does not answer: it may be stopped",
        "主机 {host} 上的 {rank} 没有应答：它可能已停止",
    ),
    Template(
        PREFIX + "no_such_message", "no rank has sent a message with this tag", "没有 rank 发送过带有此标签的消息"
    ),
)  # fmt: skip
GROUPS = (
    Template(PREFIX + "group", ". The group is {{{ranks}}}", "。该通信组为 {{{ranks}}}"),
    Template(
        PREFIX + "large_group",
        ". The group is {{{ranks}, ... ({count} ranks)}}",
        "。该通信组为 {{{ranks}, ……（共 {count} 个 rank）}}",
    ),
)
TEMPLATES = {template.id: template for template in (*chain(*FAULTS.values()), *DETAILS, *GROUPS)}

RANK = Template("engine.rank", "rank {rank}", "rank {rank}")
RANK_AND_PROCESS = Template(
    "engine.rank_and_process", "rank {rank} (process {process})", "rank {rank}（进程 {process}）"
)
RANK_OF_GROUP = Template(
    "engine.rank_of_group",
    "rank {rank} of the job (rank {group_rank} of its group)",
    "rank {rank}（作业内编号；组内编号为 {group_rank}）",
)
RANK_OF_GROUP_AND_PROCESS = Template(
    "engine.rank_of_group_and_process",
    "rank {rank} of the job (rank {group_rank} of its group, process {process})",
    "rank {rank}（作业内编号；组内编号为 {group_rank}；进程 {process}）",
)
ANY_RANK = Template("engine.any_rank", "any rank", "rank（任意）")
UNKNOWN_CALL = Template("engine.unknown_call", "something else", "其他调用")
FOLLOWED_BY = Template("engine.followed_by", "; {details}", "；{details}")
FORKED_CHILD = Template(
    "engine.forked_child",
    "process {child} was forked from {rank} (process {process}) and cannot use its communicators: they belong to the "
    "parent. Start helper processes with the start method 'spawn' or 'forkserver', or let them make their own "
    "communicator with connect()",
    "进程 {child} 由 {rank}（进程 {process}）fork 而来，不能使用它的通信器：通信器属于父进程。请以 'spawn' 或 "
    "'forkserver' 方式启动辅助进程，或让它们用 connect() 建立自己的通信器",
)


def sentence_of(description: bytes) -> Message:
    """Return the sentence for a description of the engine. The description may be cut off at any byte."""
    first, *rest = (_parsed(line) for line in description.decode(errors="ignore").split("\n"))
    details = [_filled(*line) for line in rest if not line[0].endswith("group")]
    groups = [_filled(*line) for line in rest if line[0].endswith("group")]
    return _filled(
        *first, details=FOLLOWED_BY(details=join(details)) if details else "", group=groups[0] if groups else ""
    )


def group_note(description: bytes) -> str:
    """Return the sentence that lists a group, to be appended to a message; empty where ranks need no explanation."""
    return _filled(*_parsed(description.decode())) if description else ""


def value_of(text: str) -> str | int:
    """Return the value of a parameter: a rank, a call, a number or plain text."""
    if not text.startswith("@"):
        return int(text) if text.isdecimal() else unquote(text)
    if text == "@any":
        return ANY_RANK()
    if text == "@unknown":
        return UNKNOWN_CALL()
    rank, group_rank, process = [*text[1:].split("/"), "", ""][:3]
    if not group_rank:
        return RANK_AND_PROCESS(rank=rank, process=process) if process else RANK(rank=rank)
    if not process:
        return RANK_OF_GROUP(rank=rank, group_rank=group_rank)
    return RANK_OF_GROUP_AND_PROCESS(rank=rank, group_rank=group_rank, process=process)


def _parsed(line: str) -> tuple[str, dict[str, str | int]]:
    name, *fields = line.split("|")
    pairs = (field.split("=", 1) for field in fields if "=" in field)
    return name, {key: value_of(value) for key, value in pairs}


def _filled(name: str, parameters: dict[str, str | int], **more: str) -> Message:
    template = TEMPLATES.get(PREFIX + name)
    if template is None:  # the end of a long description was cut off, or this module lacks the id
        return Message(name)
    every: dict[str, str | int] = {**parameters, **more}
    fields = [field for _, field, _, _ in Formatter().parse(template.english) if field]
    return template(**{field: every.get(field, "...") for field in fields})
