"""The sentences about messages between ranks: those that do not match, and ranks that wait for each other."""

from unisono.message import Template

OTHER_CHUNK_COUNT = Template(
    "schedule.other_chunk_count",
    "the message from rank {rank} has a different number of chunks",
    "来自 rank {rank} 的消息，块数与接收方不符",
)
CHUNK_COUNT = Template("schedule.chunk_count", "{count} (chunks {chunks})", "{count} 块（{chunks}）")
NAME_SAME_CHUNKS = Template(
    "schedule.name_same_chunks",
    "name the same chunks in the send and in its receive",
    "请让发送和对应的接收指定相同的块",
)
NEVER_RECEIVED = Template(
    "schedule.never_received",
    "{count} messages from rank {src} to rank {dst} were sent but never received",
    "rank {src} 发给 rank {dst} 的 {count} 条消息没有被接收",
)
ONE_NEVER_RECEIVED = Template(
    "schedule.one_never_received",
    "{count} message from rank {src} to rank {dst} was sent but never received",
    "rank {src} 发给 rank {dst} 的 {count} 条消息没有被接收",
)
MATCHING_RECEIVE = Template(
    "schedule.matching_receive",
    "a recv or recv_reduce on rank {dst} with src={src}",
    "rank {dst} 上有一个 src={src} 的 recv 或 recv_reduce",
)
LEFT_IN_CHANNEL = Template(
    "schedule.left_in_channel", "chunk {chunks} is left in the channel", "第 {chunks} 块仍留在通道中"
)
RECEIVE_OR_NOT_SEND = Template(
    "schedule.receive_or_not_send",
    "receive it on rank {rank}, or do not send it",
    "请在 rank {rank} 上接收它，或者不要发送",
)
FINISHED_WITHOUT_RECEIVING = Template(
    "schedule.finished_without_receiving",
    "rank {rank} finished without receiving this message",
    "rank {rank} 已结束，没有接收这条消息",
)
FINISHED_WITHOUT_SENDING = Template(
    "schedule.finished_without_sending",
    "rank {rank} finished without sending this message",
    "rank {rank} 已结束，没有发送这条消息",
)
RECEIVE_FOR_EACH = Template(
    "schedule.receive_for_each",
    "a receive on rank {peer} for each {kind} on rank {rank}",
    "rank {rank} 上的每个 {kind}，在 rank {peer} 上都有对应的接收",
)
SEND_FOR_EACH = Template(
    "schedule.send_for_each",
    "a send on rank {peer} for each {kind} on rank {rank}",
    "rank {rank} 上的每个 {kind}，在 rank {peer} 上都有对应的发送",
)
ENDED_AFTER = Template(
    "schedule.ended_after", "rank {rank} ended after {steps} steps", "rank {rank} 在 {steps} 步之后结束"
)
ENDED_AND_FULL = Template(
    "schedule.ended_and_full",
    "rank {rank} ended after {steps} steps, and the channel of depth {depth} is full",
    "rank {rank} 在 {steps} 步之后结束，深度为 {depth} 的通道已满",
)
ADD_RECV = Template(
    "schedule.add_recv",
    "add the missing recv on rank {rank}, or leave this op out",
    "请在 rank {rank} 上补上缺少的 recv，或去掉该动作",
)
ADD_SEND = Template(
    "schedule.add_send",
    "add the missing send on rank {rank}, or leave this op out",
    "请在 rank {rank} 上补上缺少的 send，或去掉该动作",
)
DEADLOCK = Template("schedule.deadlock", "{count} ranks wait for each other in a cycle", "{count} 个 rank 循环等待")
DEADLOCK_AT_DEPTH = Template(
    "schedule.deadlock_at_depth",
    "{count} ranks wait for each other in a cycle at channel depth {depth}",
    "通道深度为 {depth} 时，{count} 个 rank 循环等待",
)
ALL_FINISH = Template("schedule.all_finish", "every rank finishes", "每个 rank 都能运行到结束")
WAITS_FOR = Template(
    "schedule.waits_for",
    "rank {rank} waits in step {step} for rank {peer} (`{op}`)",
    "rank {rank} 在第 {step} 步等待 rank {peer}（`{op}`）",
)
AND_MORE = Template("schedule.and_more", "... and {count} more", "……以及另外 {count} 个")
RECEIVE_FIRST = Template(
    "schedule.receive_first",
    "receive before sending more, or put the send and the receive into one step",
    "请先接收再继续发送，或把发送和接收放进同一步",
)
SEND_FIRST = Template(
    "schedule.send_first",
    "let one of them send first, or put the send and the receive into one step: the sends of a step do not wait for "
    "its receives",
    "请让其中一个 rank 先发送，或把发送和接收放进同一步（一步中的发送不等待同一步的接收）",
)
