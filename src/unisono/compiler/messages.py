"""The sentences that the compiler says: programs that the engine cannot carry."""

from unisono.message import Template

NOT_PROVED = Template(
    "compiler.not_proved",
    "lower: {found} was given; expected a ProvedSchedule",
    "lower：传入的是 {found}；应为 ProvedSchedule",
)
MESSAGE_TOO_LONG = Template(
    "compiler.message_too_long",
    "{algorithm}: a message of {chunks} chunks; the engine carries at most {limit}",
    "{algorithm}：一条消息含 {chunks} 块；引擎的一条消息最多含 {limit} 块",
)
TOO_DEEP = Template(
    "compiler.too_deep",
    "{algorithm}: proved for channels of depth {depth}; the engine runs programs that need a depth of at most "
    "{deepest}",
    "{algorithm}：它是在通道深度为 {depth} 时得到证明的；引擎只运行所需深度不超过 {deepest} 的程序",
)
UNBOUNDED = Template("compiler.unbounded", "unbounded", "不限")
STAGING_TOO_SMALL = Template(
    "compiler.staging_too_small",
    "{algorithm}: a rank sends too many chunks for the staging area of this communicator; connect with a larger "
    "staging_bytes, or choose another algorithm",
    "{algorithm}：一个 rank 发送的块太多，该通信器的中转区容纳不下；请用更大的 staging_bytes 连接，或选用其他算法",
)
