"""The sentences of the rendezvous between hosts, for users, in English and Chinese."""

from __future__ import annotations

from unisono.message import Template

# Arguments (network_options.py, interfaces.py).
BAD_RENDEZVOUS = Template(
    "bootstrap.bad_rendezvous",
    "rendezvous={text!r}; expected HOST:PORT with the host of rank 0, such as node-1:23456 or [fd00::1]:23456",
    "rendezvous={text!r}；应为 rank 0 所在主机的 HOST:PORT，例如 node-1:23456 或 [fd00::1]:23456",
)
NO_RENDEZVOUS = Template(
    "bootstrap.no_rendezvous",
    "connect: {launcher} has started {size} ranks, {local_size} of them on this host, and no address is known at "
    'which ranks of different hosts meet; hint: connect(rendezvous="HOST:PORT", token_file=PATH), with the host of '
    "rank 0, a free port, and a file that holds the same token on every host",
    "connect：{launcher} 启动了 {size} 个 rank，其中 {local_size} 个在本机，但不知道各主机的 rank 在哪个地址会合；"
    '建议：connect(rendezvous="HOST:PORT", token_file=PATH)，其中 HOST 为 rank 0 所在主机，PORT 为空闲端口，'
    "PATH 文件在每台主机上包含相同的令牌",
)
BAD_PORTS = Template(
    "bootstrap.bad_ports",
    "ports={ports}; expected a range of port numbers from 1 to 65535 with step 1, such as range(40000, 40100)",
    "ports={ports}；应为 1 到 65535 之间、步长为 1 的端口范围，例如 range(40000, 40100)",
)
BAD_TRANSPORT = Template(
    "bootstrap.bad_transport",
    'transport={transport}; expected "tcp", "ucx", or "ucx:PATH" with the path of libucp.so.0',
    'transport={transport}；应为 "tcp"、"ucx"，或带有 libucp.so.0 路径的 "ucx:PATH"',
)
UCX_NOT_USABLE = Template(
    "bootstrap.ucx_not_usable",
    "connect: rank {rank} cannot use UCX: {reason}; hint: install it with pip install unisono[net], name the library "
    'with transport="ucx:PATH", or use transport="tcp"',
    "connect：rank {rank} 无法使用 UCX：{reason}；建议：用 pip install unisono[net] 安装，用 "
    'transport="ucx:PATH" 指定库文件，或使用 transport="tcp"',
)
TCP_WITHOUT_RDMA = Template(
    "bootstrap.tcp_without_rdma",
    'tcp (no RDMA: only transport="ucx" supports it; RDMA devices of this host: {devices})',
    'tcp（无 RDMA：只有 transport="ucx" 支持 RDMA；本主机的 RDMA 设备：{devices}）',
)
NO_RDMA_DEVICE = Template("bootstrap.no_rdma_device", "none", "无")
TLS_FILE = Template(
    "bootstrap.tls_file",
    "connect(tls=...): cannot use {path}: {reason}; expected files in PEM format, and the private key of the "
    "certificate, without a password",
    "connect(tls=...)：无法使用 {path}：{reason}；应为 PEM 格式的文件，且密钥没有口令并与证书匹配",
)
BAD_TLS = Template(
    "bootstrap.bad_tls",
    "connect: tls={tls}; expected unisono.Tls(certificate=PATH, key=PATH, authority=PATH)",
    "connect：tls={tls}；应为 unisono.Tls(certificate=PATH, key=PATH, authority=PATH)",
)
TLS_OVER_UCX = Template(
    "bootstrap.tls_over_ucx",
    'connect: transport={transport!r} and tls are both given, but UCX does not encrypt; hint: use transport="tcp"',
    'connect：同时给出了 transport={transport!r} 和 tls，但 UCX 不加密；建议：使用 transport="tcp"',
)
TLS_NOT_USABLE = Template(
    "bootstrap.tls_not_usable",
    "connect: rank {rank} cannot use TLS: {reason}",
    "connect：rank {rank} 无法使用 TLS：{reason}",
)
OVER_TLS = Template(
    "bootstrap.over_tls", "tcp with TLS ({openssl}); UCX does not encrypt", "带 TLS 的 tcp（{openssl}）；UCX 不加密"
)
UCX_DEVICES = Template("bootstrap.ucx_devices", "{ucx} ({devices})", "{ucx}（{devices}）")
UCX_WITHOUT_RDMA_DEVICE = Template(
    "bootstrap.ucx_without_rdma_device",
    "{ucx} ({devices}; no RDMA: this host has no RDMA device)",
    "{ucx}（{devices}；无 RDMA：本主机没有 RDMA 设备）",
)
UCX_WITHOUT_RDMA = Template(
    "bootstrap.ucx_without_rdma",
    "{ucx} ({devices}; no RDMA: this UCX library does not use {present})",
    "{ucx}（{devices}；无 RDMA：该 UCX 库不使用 {present}）",
)
NO_TOKEN = Template(
    "bootstrap.no_token",
    "connect: the ranks meet over the network, and the job has no token; expected a token that only ranks of this "
    "job know; hint: write a long random text to a file that only you can read (mode 0600), on every host, and call "
    "connect(token_file=PATH)",
    "connect：各 rank 通过网络会合，但作业没有令牌；应有只有本作业的 rank 知道的令牌；建议：在每台主机上"
    "把一段较长的随机文本写入只有你能读取的文件（权限 0600），并调用 connect(token_file=PATH)",
)
TWO_TOKENS = Template(
    "bootstrap.two_tokens",
    "connect: both token and token_file are given; expected one of them",
    "connect：同时给出了 token 和 token_file；应只给出其中一个",
)
SHORT_TOKEN = Template(
    "bootstrap.short_token",
    "connect: the token has {length} characters; expected a random text of at least {least} characters",
    "connect：令牌有 {length} 个字符；应为至少 {least} 个字符的随机文本",
)
BAD_TOKEN_FILE = Template(
    "bootstrap.bad_token_file",
    "connect: cannot read the token file {path}: {reason}",
    "connect：无法读取令牌文件 {path}：{reason}",
)
TOKEN_FILE_NOT_PRIVATE = Template(
    "bootstrap.token_file_not_private",
    "connect: the token file {path} is not private: expected a file of user {user} with mode 0600, found user "
    "{owner} and mode {mode}; hint: chmod 600 {path}",
    "connect：令牌文件 {path} 不是私有文件：应属于用户 {user} 且权限为 0600，实际属于用户 {owner}，权限为 {mode}；"
    "建议：chmod 600 {path}",
)
NO_SUCH_INTERFACE = Template(
    "bootstrap.no_such_interface",
    "interface={interface!r}; expected the name, the address or the network of an interface of this host: {known}",
    "interface={interface!r}；应为本机某个网络接口的名称、地址或网段：{known}",
)

# Rank 0's side (network_server.py).
MOVED = Template(
    "bootstrap.moved",
    "connect: the ranks are on several hosts and meet over the network",
    "connect：各 rank 位于多台主机上，将通过网络会合",
)
CANNOT_LISTEN = Template(
    "bootstrap.cannot_listen",
    "connect: rank 0 cannot listen at {address}: {reason}; hint: another job may use this port, choose another one",
    "connect：rank 0 无法在 {address} 监听：{reason}；建议：可能有其他作业在使用该端口，请换一个端口",
)
COURIER_CANNOT_LISTEN = Template(
    "bootstrap.courier_cannot_listen",
    "connect: rank {rank} cannot listen for messages from other hosts at {address}: {reason}",
    "connect：rank {rank} 无法在 {address} 监听来自其他主机的消息：{reason}",
)
FAR_RANKS_MISSING = Template(
    "bootstrap.far_ranks_missing",
    "connect: timed out after {seconds:g} s; these ranks of {size} have not connected to rank 0 at {address}: "
    "{missing}; connected: {connected}{refused}; hint: check that they were started and that no firewall blocks the "
    "port, or {hint}",
    "connect：{seconds:g} 秒后超时；共 {size} 个 rank，以下 rank 没有连接到 {address} 上的 rank 0：{missing}；"
    "已连接：{connected}{refused}；建议：检查它们是否已启动、防火墙是否拦截该端口，或{hint}",
)
RANKS_ON_HOST = Template("bootstrap.ranks_on_host", "{ranks} on {host}", "{host} 上的 {ranks}")
PEER_REFUSED = Template(
    "bootstrap.peer_refused",
    "{address} was refused as rank {rank}: {reason}",
    "{address} 作为 rank {rank} 被拒绝：{reason}",
)
TLS_REFUSED = Template("bootstrap.tls_refused", "{address} was refused: {reason}", "{address} 被拒绝：{reason}")
TLS_FAILED = Template("bootstrap.tls_failed", "TLS: {reason}", "TLS：{reason}")
WITHOUT_TLS = Template("bootstrap.without_tls", "it does not use TLS", "它不使用 TLS")
ONLY_IT_USES_TLS = Template(
    "bootstrap.only_it_uses_tls", "it uses TLS, and rank 0 does not", "它使用 TLS，而 rank 0 不使用"
)
REASON_TOKEN = Template("bootstrap.reason_token", "its token differs", "令牌不同")
REASON_JOB = Template("bootstrap.reason_job", "it belongs to another job", "它属于另一个作业")
REASON_PROTOCOL = Template(
    "bootstrap.reason_protocol", "it uses another version of Unisono", "它使用的 Unisono 版本不同"
)
REASON_HELLO = Template(
    "bootstrap.reason_hello", "its hello is malformed ({reason})", "它的第一条消息格式错误（{reason}）"
)
OTHER_UNISONO = Template(
    "bootstrap.other_unisono",
    "connect: rank {rank} on {host} uses Unisono {theirs}, rank 0 on {host_0} uses {ours}; expected the same version "
    "on all hosts",
    "connect：{host} 上的 rank {rank} 使用 Unisono {theirs}，{host_0} 上的 rank 0 使用 {ours}；"
    "所有主机上的版本应相同",
)
FAR_RANK_TWICE = Template(
    "bootstrap.far_rank_twice",
    "connect: two processes are rank {rank}: process {process} on {host} and process {other} on {other_host}",
    "connect：有两个进程都是 rank {rank}：{host} 上的进程 {process} 和 {other_host} 上的进程 {other}",
)
NO_SUCH_FAR_RANK = Template(
    "bootstrap.no_such_far_rank",
    "connect: process {process} on {host} is rank {rank}; expected a rank in 1..{last}, since this process is rank 0",
    "connect：{host} 上的进程 {process} 是 rank {rank}；应在 1..{last} 之内，因为 rank 0 已在运行",
)
LOOPBACK = Template(
    "bootstrap.loopback",
    "connect: rank {rank} on {host} has the loopback address {address}, which rank {other} on {other_host} "
    "({other_address}) cannot reach; hint: connect(interface=...) on {host}, or a rendezvous host name that does not "
    "resolve to a loopback address there",
    "connect：{host} 上的 rank {rank} 使用回环地址 {address}，{other_host} 上的 rank {other}（{other_address}）"
    "无法访问它；建议：在 {host} 上使用 connect(interface=...)，或使用在该主机上不会解析为回环地址的会合主机名",
)
FAR_ENDED = Template(
    "bootstrap.far_ended",
    "connect: rank {rank} (process {process} on {host}) ended before all ranks were ready",
    "connect：rank {rank}（{host} 上的进程 {process}）在所有 rank 就绪之前结束",
)
FAR_UNREACHABLE = Template(
    "bootstrap.far_unreachable",
    "connect: rank {rank} (process {process} on {host}) can no longer be reached: {reason}",
    "connect：无法再连接到 rank {rank}（{host} 上的进程 {process}）：{reason}",
)
FAR_SILENT = Template(
    "bootstrap.far_silent",
    "connect: rank {rank} (process {process} on {host}) was not ready within {seconds:g} s",
    "connect：rank {rank}（{host} 上的进程 {process}）在 {seconds:g} 秒内没有就绪",
)
BAD_FAR_MESSAGE = Template(
    "bootstrap.bad_far_message",
    "connect: rank {rank} (process {process} on {host}) sent a message that is not understood: {reason}",
    "connect：无法理解 rank {rank}（{host} 上的进程 {process}）发来的消息：{reason}",
)

# The side of the other ranks (network_client.py, network_rendezvous.py).
RANK_0_UNREACHABLE = Template(
    "bootstrap.rank_0_unreachable",
    "connect: rank {rank} on {host} timed out after {seconds:g} s; it could not connect to rank 0 at {address}: "
    "{reason}; hint: check that rank 0 was started on this host and that no firewall blocks the port",
    "connect：{host} 上的 rank {rank} 在 {seconds:g} 秒后超时；无法连接到 {address} 上的 rank 0：{reason}；建议："
    "检查 rank 0 是否已在该主机上启动、防火墙是否拦截该端口",
)
NOT_RESOLVED = Template(
    "bootstrap.not_resolved", "the name does not resolve ({reason})", "无法解析主机名（{reason}）"
)
ADDRESS_FAILED = Template("bootstrap.address_failed", "{address}: {reason}", "{address}：{reason}")
CLOSED_BY_PEER = Template("bootstrap.closed_by_peer", "{address} closed the connection", "{address} 关闭了连接")
OTHER_JOB_THERE = Template(
    "bootstrap.other_job_there", "{address} is rank 0 of another job", "{address} 是另一个作业的 rank 0"
)
NOT_UNISONO = Template(
    "bootstrap.not_unisono", "{address} is not a rank of Unisono", "{address} 不是 Unisono 的 rank"
)
RANK_0_USES_TLS = Template(
    "bootstrap.rank_0_uses_tls",
    "connect: rank 0 at {address} uses TLS, and rank {rank} on {host} does not; hint: pass certificates on all "
    "ranks, connect(tls=...)",
    "connect：{address} 上的 rank 0 使用 TLS，而 {host} 上的 rank {rank} 不使用；建议：为所有 rank 指定证书，"
    "connect(tls=...)",
)
NO_TLS_TO_RANK_0 = Template(
    "bootstrap.no_tls_to_rank_0",
    "connect: rank {rank} on {host} and rank 0 at {address} cannot establish a TLS connection: {reason}; hint: all "
    "ranks need certificates from the same authority, and none may have expired",
    "connect：{host} 上的 rank {rank} 与 {address} 上的 rank 0 之间无法使用 TLS：{reason}；建议：所有 rank "
    "都需要由同一机构签发且未过期的证书",
)
WRONG_TOKEN = Template(
    "bootstrap.wrong_token",
    "connect: rank {rank} on {host} was refused by rank 0 at {address}: their tokens differ; hint: give all ranks "
    "the same token",
    "connect：{host} 上的 rank {rank} 被 {address} 上的 rank 0 拒绝：两者的令牌不同；"
    "建议：为所有 rank 指定相同的令牌",
)
FALSE_RANK_0 = Template(
    "bootstrap.false_rank_0",
    "connect: the process at {address} cannot prove that it knows the token of the job, so it is not rank 0; hint: "
    "another process may use this port, choose another one",
    "connect：{address} 上的进程无法证明它知道作业的令牌，因此不是 rank 0；建议：可能有其他进程在使用该端口，"
    "请换一个端口",
)
OTHER_PROTOCOL = Template(
    "bootstrap.other_protocol",
    "connect: rank 0 at {address} uses another version of Unisono than rank {rank} on {host}; expected the same "
    "version on all hosts",
    "connect：{address} 上的 rank 0 与 {host} 上的 rank {rank} 使用的 Unisono 版本不同；所有主机上的版本应相同",
)
RANK_0_ENDED = Template(
    "bootstrap.rank_0_ended",
    "connect: rank 0 at {address} ended before all ranks were ready",
    "connect：{address} 上的 rank 0 在所有 rank 就绪之前结束",
)
RANK_0_LOST = Template(
    "bootstrap.rank_0_lost",
    "connect: rank 0 at {address} can no longer be reached: {reason}",
    "connect：无法再连接到 {address} 上的 rank 0：{reason}",
)
RANK_0_QUIET = Template(
    "bootstrap.rank_0_quiet",
    "connect: rank 0 at {address} has not answered within {seconds:g} s",
    "connect：{address} 上的 rank 0 在 {seconds:g} 秒内没有应答",
)
BAD_RANK_0_MESSAGE = Template(
    "bootstrap.bad_rank_0_message",
    "connect: rank 0 at {address} sent a message that is not understood: {reason}",
    "connect：无法理解 {address} 上的 rank 0 发来的消息：{reason}",
)
