"""The messages of this package, in English and Chinese."""

from unisono.message import Template

TOO_MANY_RANKS = Template(
    "networks.too_many_ranks",
    "network {network} has {most} ranks\n  expected: between 1 and {most} ranks\n  found:    {size}\n"
    "  hint:     choose fewer ranks, or give the network more hosts",
    "网络 {network} 有 {most} 个 rank\n  应为：1 到 {most} 个 rank\n  实际：{size}\n"
    "  建议：减少 rank 数，或增加网络的主机数",
)
NO_NETWORK = Template(
    "networks.no_network",
    "no network is called {name!r}\n  expected: a network file (.toml), or one of {known}\n  hint:     {hint}",
    "没有名为 {name!r} 的网络\n  应为：网络文件（.toml），或以下之一：{known}\n  建议：{hint}",
)
NOT_MEASURED = Template(
    "networks.not_measured",
    "this-machine has not been measured\n  expected: the network file {path}\n  found:    no file\n"
    "  hint:     run `unisono tune`, or use another network",
    "尚未测量本机（this-machine）\n  应为：网络文件 {path}\n  实际：没有该文件\n"
    "  建议：运行 `unisono tune`，或使用其他网络",
)
NO_FILE = Template(
    "networks.no_file",
    "network {path!r}\n  expected: the path of a network file (.toml)\n  found:    no such file\n"
    "  hint:     `unisono list --networks` lists the presets",
    "网络 {path!r}\n  应为：网络文件（.toml）的路径\n  实际：没有该文件\n"
    "  建议：`unisono list --networks` 列出全部预设",
)
NOT_TEXT = Template(
    "networks.not_text",
    "{file}\n  expected: a network file in UTF-8\n  found:    {error}\n  hint:     docs/networks.md shows one",
    "{file}\n  应为：UTF-8 编码的网络文件\n  实际：{error}\n  建议：参见 docs/networks.md 中的例子",
)
NOT_TOML = Template(
    "networks.not_toml",
    "{file}, line {line}\n  expected: TOML\n  found:    {error}\n  hint:     docs/networks.md shows a network file",
    "{file} 第 {line} 行\n  应为：TOML\n  实际：{error}\n  建议：参见 docs/networks.md 中的网络文件",
)
BAD_VALUE = Template(
    "networks.bad_value",
    "{file}, line {line}: {key}\n  expected: {expected}\n  found:    {found}",
    "{file} 第 {line} 行：{key}\n  应为：{expected}\n  实际：{found}",
)
NO_KEY = Template(
    "networks.no_key",
    "{file}, line {line}: there is no key {key}\n  expected: one of {known}\n  found:    {key}\n  hint:     {hint}",
    "{file} 第 {line} 行：没有键 {key}\n  应为：以下之一：{known}\n  实际：{key}\n  建议：{hint}",
)
MISSING_KEY = Template(
    "networks.missing_key",
    "{file}, line {line}: {key} is missing\n  expected: {expected}\n  found:    nothing",
    "{file} 第 {line} 行：缺少 {key}\n  应为：{expected}\n  实际：没有",
)
MEANT = Template("networks.meant", "did you mean {near!r}?", "是否想写 {near!r}？")
SEE_DOCS = Template("networks.see_docs", "docs/networks.md describes the format", "格式见 docs/networks.md")
SEE_LIST = Template(
    "networks.see_list", "`unisono list --networks` lists the presets", "`unisono list --networks` 列出全部预设"
)
# What a key expects.
A_TEXT = Template("networks.a_text", "a text in quotation marks", "用引号括起来的文字")
A_TIME = Template("networks.a_time", 'a time that is not negative, such as "1.5 us"', '非负的时间，例如 "1.5 us"')
A_BANDWIDTH = Template(
    "networks.a_bandwidth",
    'a bandwidth above zero, such as "25 GB/s" or "100 Gbit/s"',
    '大于零的带宽，例如 "25 GB/s" 或 "100 Gbit/s"',
)
A_TIME_PER_BYTE = Template(
    "networks.a_time_per_byte",
    'a time per byte, such as "0.1 ns/B", or a rate, such as "10 GB/s"',
    '每字节的时间，例如 "0.1 ns/B"；或速率，例如 "10 GB/s"',
)
BYTES = Template("networks.bytes", 'a number of bytes, such as "64 KiB"', '字节数，例如 "64 KiB"')
A_COUNT = Template("networks.a_count", "a whole number of at least 1", "不小于 1 的整数")
A_WHOLE_NUMBER = Template("networks.a_whole_number", "a whole number of at least 0", "不小于 0 的整数")
COUNTS = Template(
    "networks.counts",
    "a list of whole numbers of at least 1, such as [4, 4, 2]",
    "由不小于 1 的整数组成的列表，例如 [4, 4, 2]",
)
NICS = Template(
    "networks.nics",
    "at most {most}, the ranks of a host, because a rank uses one NIC; a rank with several has the sum of their "
    "bandwidths on one",
    "不超过每台主机的 rank 数 {most}：每个 rank 只用一块网卡；若一个 rank 有多块网卡，请写成一块，带宽取总和",
)
A_FACTOR = Template("networks.a_factor", "a number of at least 1", "不小于 1 的数")
A_SHARE = Template("networks.a_share", "a number above 0 and at most 1", "大于 0 且不超过 1 的数")
A_TABLE = Template(
    "networks.a_table", "a table: [{name}] on a line, followed by its keys", "一个表：单独一行 [{name}]，其后是它的键"
)
TABLES = Template(
    "networks.tables",
    "tables: [[{name}]] on a line, followed by the keys of each",
    "若干个表：单独一行 [[{name}]]，其后是各自的键",
)
ONE_OF = Template("networks.one_of", "one of {words}", "以下之一：{words}")

# The names of links.
MEMORY_OF_HOST = Template("networks.memory_of_host", "memory of host {host}", "主机 {host} 的内存")
NEAR_PAIR = Template(
    "networks.near_pair",
    "near link from rank {source} to rank {target}",
    "从 rank {source} 到 rank {target} 的近链路",
)
NEAR_OUT = Template("networks.near_out", "near link out of rank {rank}", "从 rank {rank} 出发的近链路")
NEAR_INTO = Template("networks.near_into", "near link into rank {rank}", "到达 rank {rank} 的近链路")
NEAR_OF = Template("networks.near_of", "near link of rank {rank}", "rank {rank} 的近链路")
NIC_OUT = Template("networks.nic_out", "link out of {port}", "从{port}出发的链路")
NIC_INTO = Template("networks.nic_into", "link into {port}", "到达{port}的链路")
NIC_OF = Template("networks.nic_of", "link of {port}", "{port}的链路")
PORT_OF_HOST = Template("networks.port_of_host", "host {host}", "主机 {host} ")
PORT_OF_NIC = Template("networks.port_of_nic", "host {host}, NIC {nic}", "主机 {host} 网卡 {nic} ")
TORUS_LINK = Template(
    "networks.torus_link",
    "link of host {host} in direction {direction}",
    "主机 {host} 沿 {direction} 方向的链路",
)
LEAF_SWITCH = Template("networks.leaf_switch", "leaf switch", "叶交换机")
SPINE_SWITCH = Template("networks.spine_switch", "spine switch", "脊交换机")
LINK_UP = Template(
    "networks.link_up", "link up from {level} {switch}, number {number}", "{level} {switch} 的上行链路 {number}"
)
LINK_DOWN = Template(
    "networks.link_down", "link down to {level} {switch}, number {number}", "{level} {switch} 的下行链路 {number}"
)
LOCAL_CABLE = Template(
    "networks.local_cable",
    "link from router {source} to router {target} of group {group}",
    "组 {group} 内从路由器 {source} 到路由器 {target} 的链路",
)
GLOBAL_CABLE = Template(
    "networks.global_cable",
    "link {number} from group {source} to group {target}",
    "从组 {source} 到组 {target} 的链路 {number}",
)
