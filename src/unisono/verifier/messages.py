"""The sentences that the verifier says: what a slot holds, what is wrong with it, and what a proof shows."""

from unisono.message import Template

# The content of a slot.
NOTHING = Template("verifier.nothing", "nothing", "空")
CHUNK_OF_RANK = Template(
    "verifier.chunk_of_rank", "{name} (chunk {chunk} of rank {rank})", "{name}（rank {rank} 的第 {chunk} 块）"
)
CHUNK_OF_RANKS = Template(
    "verifier.chunk_of_ranks",
    "{name} (the sum of chunk {chunk} of {count} ranks: {ranks})",
    "{name}（{count} 个 rank 的第 {chunk} 块之和：rank {ranks}）",
)
CHUNK_OF_OTHER_RANKS = Template(
    "verifier.chunk_of_other_ranks", "chunk {chunk} of other ranks", "其他 rank 的第 {chunk} 块"
)
CHUNK_OF_ANY_RANKS = Template(
    "verifier.chunk_of_any_ranks", "chunk {chunk} of any ranks", "第 {chunk} 块的数据（来自哪个 rank 均可）"
)
SENT_AS_CHUNK = Template(
    "verifier.sent_as_chunk",
    "{content}, sent as chunk {chunk}",
    "{content}，发送方把它作为第 {chunk} 块发出",
)
MISSING = Template("verifier.missing", "missing: {ranks}", "缺少的 rank：{ranks}")
PLUS = Template("verifier.plus", "plus {content}", "再加上：{content}")

# The result.
NOT_THE_RESULT = Template(
    "verifier.not_the_result", "chunk {chunk} does not hold the result", "第 {chunk} 块不是应有的结果"
)
SHOW_RANK = Template(
    "verifier.show_rank",
    "`unisono show {name} -n {size} --rank {rank}` lists the steps of this rank",
    "`unisono show {name} -n {size} --rank {rank}` 可列出该 rank 的各个步骤",
)
OTHER_ORDER = Template(
    "verifier.other_order",
    "chunk {chunk} is added up in a different order than on rank {rank}: same value, different bits",
    "第 {chunk} 块的相加顺序与 rank {rank} 不同：数学上相等，但结果不能逐位一致",
)
AS_ON_RANK = Template("verifier.as_on_rank", "as on rank {rank}: {expression}", "与 rank {rank} 相同：{expression}")
ON_RANK = Template("verifier.on_rank", "on rank {rank}: {expression}", "rank {rank} 上：{expression}")
SAME_ORDER = Template(
    "verifier.same_order",
    "let every rank add in the same order (receive into scratch, then combine in rank order), or let one rank add "
    "and send the result",
    "请让每个 rank 按相同的顺序相加（先接收到暂存块，再按 rank 编号的顺序合并），或由一个 rank 相加后把结果发出去",
)
ROUNDED_DIFFERENTLY = Template(
    "verifier.rounded_differently",
    "chunk {chunk} differs from rank 0 when a codec rounds what is sent",
    "编解码器对发送的数据舍入时，第 {chunk} 块与 rank 0 不同",
)
ROUNDED_AT_RANDOM = Template(
    "verifier.rounded_at_random",
    "chunk {chunk} differs from rank 0 when a codec rounds what is sent stochastically",
    "编解码器对发送的数据随机舍入时，第 {chunk} 块与 rank 0 不同",
)
ADD_ON_ONE_RANK = Template(
    "verifier.add_on_one_rank",
    "let one rank add and send the result to the others, or call without a codec",
    "请由一个 rank 相加并把结果发给其他 rank，或在调用时不使用编解码器",
)
DIFFERENT_CHUNKS_ADDED = Template(
    "verifier.different_chunks_added",
    "two different chunks are added to each other",
    "把两个不同的块加在了一起",
)
ADD_SAME_CHUNKS = Template(
    "verifier.add_same_chunks",
    "add only chunks of the same number; use a separate scratch slot for each chunk",
    "只能把块号相同的块相加；请为每一块使用单独的暂存块",
)
COUNTED_TWICE = Template(
    "verifier.counted_twice", "the input of rank {rank} is counted twice", "rank {rank} 的输入被重复计入"
)
DISJOINT_SUMS = Template(
    "verifier.disjoint_sums", "two sums that have no rank in common", "相加的两个和不含相同的 rank"
)
RECEIVE_FINISHED_SUM = Template(
    "verifier.receive_finished_sum",
    "use {recv} instead of {recv_reduce} where a finished sum arrives",
    "如果收到的已是最终的和，请用 {recv} 而不是 {recv_reduce}",
)

# Reading and writing.
READ_BEFORE_WRITTEN = Template(
    "verifier.read_before_written",
    "chunk {chunk} is read, but nothing was ever written to it",
    "读取了第 {chunk} 块，但它从未被写入",
)
EARLIER_CONTENT = Template(
    "verifier.earlier_content",
    "an input, or data received or copied into it in an earlier step",
    "输入，或先前某一步接收或复制到那里的数据",
)
RECEIVE_IT_FIRST = Template("verifier.receive_it_first", "receive it first", "请先接收它")
ROOT_HOLDS = Template(
    "verifier.root_holds",
    "receive it first; at the start of a rooted collective only the root may hold data",
    "请先接收它；有根的集合通信操作开始时，只有根 rank 可能持有数据",
)
INPUT_IS_KEPT = Template(
    "verifier.input_is_kept", "slot {slot} is input, which must not be changed", "槽 {slot} 是输入，不得改动"
)
OUTPUT_OR_SCRATCH = Template(
    "verifier.output_or_scratch",
    "a slot of the output ({first} to {last}) or scratch",
    "输出槽（{first} 到 {last}）或暂存块",
)
OTHER_PIECE = Template(
    "verifier.other_piece",
    "slot {slot} is for piece {piece} of a block but receives another piece",
    "槽 {slot} 用于块组的第 {piece} 片，却写入了另一片",
)
PIECE = Template("verifier.piece", "piece {piece}", "第 {piece} 片")
PIECE_LENGTHS = Template(
    "verifier.piece_lengths", "piece {piece}: pieces may differ in length", "第 {piece} 片：各片长度可能不同"
)
OTHER_CHUNK = Template(
    "verifier.other_chunk",
    "chunk {chunk} receives the data of another chunk",
    "第 {chunk} 块被写入了另一块的数据",
)
ADDED_TO_NOTHING = Template(
    "verifier.added_to_nothing",
    "data is added to chunk {chunk}, but nothing was ever written to it",
    "向第 {chunk} 块累加，但它从未被写入",
)
CONTENT_BEFORE = Template(
    "verifier.content_before",
    "an input, or data received or copied into it before",
    "输入，或先前接收或复制到那里的数据",
)
WRITE_FIRST = Template(
    "verifier.write_first",
    "use {recv} or {copy} for the first data that goes there",
    "第一次写入时请用 {recv} 或 {copy}",
)

# Barriers.
LEFT_EARLY = Template(
    "verifier.left_early",
    "the rank continues before every rank is known to have arrived",
    "该 rank 还不知道所有 rank 都已到达，就继续执行了",
)
ALL_ARRIVED = Template("verifier.all_arrived", "all {size} ranks have arrived", "全部 {size} 个 rank 都已到达")
NOT_HEARD_OF = Template(
    "verifier.not_heard_of", "not known to have arrived: {ranks}", "尚未得知以下 rank 已到达：{ranks}"
)

# Channels.
NO_DEPTH_HELPS = Template(
    "verifier.no_depth_helps",
    "{deadlock}; no channel depth avoids this",
    "{deadlock}；加深通道也无法避免",
)
DEPTH_HELPS = Template(
    "verifier.depth_helps",
    "{deadlock}; channels of depth {depth} avoid this",
    "{deadlock}；通道深度为 {depth} 即可避免",
)
DECLARE_DEPTH = Template(
    "verifier.declare_depth",
    "receive before sending more, send several chunks as one message, or declare @algorithm(..., depth={depth})",
    "请先接收再继续发送，或把几块合成一条消息，或声明 @algorithm(..., depth={depth})",
)
TOO_DEEP_TO_DECLARE = Template(
    "verifier.too_deep_to_declare",
    "receive before sending more, or send several chunks as one message (an algorithm can declare a depth of at "
    "most {deepest})",
    "请先接收再继续发送，或把几块合成一条消息（算法最多只能声明深度 {deepest}）",
)
OTHER_ERROR_DEEPER = Template(
    "verifier.other_error_deeper",
    "{hint}; with channels of depth {depth} the program has another error: {error}",
    "{hint}；通道深度为 {depth} 时，程序还有另一个错误：{error}",
)
BAD_DEPTH = Template(
    "verifier.bad_depth",
    "{algorithm}: channel depth {depth}; expected 1 or more, or None for unbounded channels",
    "{algorithm}：通道深度为 {depth}；应为 1 或更大的整数，或 None（不限深度）",
)

# Limits and misuse.
TOO_MANY_SLOTS = Template(
    "verifier.too_many_slots",
    "{algorithm}: {size} ranks with {slots} slots each; a proof handles at most {limit} slots in all",
    "{algorithm}：{size} 个 rank，每个 {slots} 个槽；一次证明最多处理 {limit} 个槽",
)
BEATS_BOUND = Template(
    "verifier.beats_bound",
    "{algorithm} on {size} ranks was proved and beats a lower bound: one of the two is wrong. {proof}",
    "{algorithm}（{size} 个 rank）通过了证明，却突破了理论下界：两者必有一个有误。{proof}",
)
ONLY_THE_VERIFIER = Template(
    "verifier.only_the_verifier",
    "only the verifier creates a ProvedSchedule; call unisono.verifier.proved(schedule)",
    "只有验证器能创建 ProvedSchedule；请调用 unisono.verifier.proved(schedule)",
)
NOT_COPIED = Template(
    "verifier.not_copied",
    "a ProvedSchedule cannot be copied or sent to another process; prove the schedule there",
    "ProvedSchedule 不能复制，也不能发送到另一个进程；请在那里重新证明",
)
NO_CODE = Template("verifier.no_code", "the code of {module} is missing", "缺少 {module} 的代码")

# Remarks on a proved algorithm.
FAR_FROM_BANDWIDTH = Template(
    "verifier.far_from_bandwidth",
    "far from the bandwidth bound: the busiest rank moves {ratio} times the minimum ({bytes} of the vector; the "
    "lower "
    "bound is {least})",
    "数据量远高于下界：最忙的 rank 的单向数据量为整个向量的 {bytes} 倍，下界为 {least} 倍（前者是后者的 {ratio} 倍）",
)
FAR_FROM_LATENCY = Template(
    "verifier.far_from_latency",
    "far from the latency bound: {rounds} rounds; the lower bound is {least}",
    "轮数远高于下界：需 {rounds} 轮，下界为 {least} 轮",
)
