"""The messages of the algorithms, in English and Chinese: errors about declarations, options and names."""

from unisono.message import Template

# Names.
UNKNOWN_NAME = Template("algorithms.unknown_name", "there is no algorithm {name}", "没有名为 {name} 的算法")
UNKNOWN_NAME_OF = Template(
    "algorithms.unknown_name_of",
    "there is no {collective} algorithm {name}",
    "{collective} 没有名为 {name} 的算法",
)
DID_YOU_MEAN = Template("algorithms.did_you_mean", "did you mean {name}?", "是否想写 {name}？")
KNOWN = Template("algorithms.known", "known: {names}", "现有算法：{names}")
SEE_LIST = Template(
    "algorithms.see_list", "`unisono list` shows all algorithms", "运行 `unisono list` 可列出全部算法"
)
SEVERAL_COLLECTIVES = Template(
    "algorithms.several_collectives",
    "{name} is an algorithm of several collectives; write one of: {names}",
    "多种集合通信操作都有名为 {name} 的算法；请写明是哪一个：{names}",
)
IS_A_COLLECTIVE = Template(
    "algorithms.is_a_collective",
    "{name} is a collective; write one of its algorithms: {names}",
    "{name} 是集合通信操作，不是算法；请写它的一个算法：{names}",
)
NOT_AN_ALGORITHM = Template(
    "algorithms.not_an_algorithm",
    "{function} needs a schedule, an algorithm or the name of one, such as 'ring'; found {found}; a generator "
    "becomes "
    "an algorithm with @algorithm(...)",
    "{function} 需要调度、算法或算法名（例如 'ring'）；实际为 {found}；用 @algorithm(...) 可把生成器声明为算法",
)
SIZE_NEEDED = Template(
    "algorithms.size_needed",
    "{function} needs the number of ranks of {algorithm}; write {function}(..., size=4)",
    "{function} 需要知道 {algorithm} 用于多少个 rank；请写 {function}(..., size=4)",
)
SCHEDULE_HAS_SIZE = Template(
    "algorithms.schedule_has_size",
    "{function}: {algorithm} is already a schedule for {size} ranks; leave out size, root and options, or pass the "
    "algorithm",
    "{function}：{algorithm} 已经是 {size} 个 rank 的调度；请去掉 size、root 和选项，或改为传入算法",
)

# Declarations.
NO_COLLECTIVE = Template(
    "algorithms.no_collective",
    "@algorithm needs a collective as its first argument; found {found}; write @algorithm(all_reduce, ...) after "
    "`from "
    "unisono.collectives import all_reduce`",
    "@algorithm 的第一个参数应为集合通信操作；实际为 {found}；请先写 `from unisono.collectives import "
    "all_reduce`，再写 @algorithm(all_reduce, ...)",
)
BAD_PARAMETERS = Template(
    "algorithms.bad_parameters",
    "{where}: {function} takes ({parameters}); expected it to begin with ({expected}), followed by options with "
    "defaults",
    "{where}：{function} 的参数是 ({parameters})；应以 ({expected}) 开头，之后是带默认值的选项",
)
NO_DEFAULT = Template(
    "algorithms.no_default",
    "{where}: {parameter} of {function} has no default; give it one, such as {parameter}=0",
    "{where}：{function} 的参数 {parameter} 没有默认值；请给出默认值，例如 {parameter}=0",
)
DECLARED_IN = Template(
    "algorithms.declared_in",
    "{file}, line {line}: @algorithm({collective})",
    "{file} 第 {line} 行：@algorithm({collective})",
)
BAD_DEPTH = Template(
    "algorithms.bad_depth",
    "@algorithm(depth={depth}); expected the number of messages that a channel must hold, 1 to {deepest}",
    "@algorithm(depth={depth})；应为通道必须容纳的消息数，1 到 {deepest}",
)
SERVES_RAISED = Template(
    "algorithms.serves_raised",
    "{algorithm}: serves= raised {error} for {size} ranks; expected a function of the size that returns True or "
    "False",
    "{algorithm}：rank 数为 {size} 时 serves= 抛出了 {error}；应为以 rank 数为参数、返回 True 或 False 的函数",
)
AMOUNT_RAISED = Template(
    "algorithms.amount_raised",
    "{algorithm}: {name}= raised {error} for {size} ranks; expected a function of the size (and of options, by name) "
    "that returns a number",
    "{algorithm}：rank 数为 {size} 时 {name}= 抛出了 {error}；应为以 rank 数（以及按名称传入的选项）为参数、"
    "返回整数的函数",
)
BAD_AMOUNT = Template(
    "algorithms.bad_amount",
    "{algorithm}: {name}= gave {amount} for {size} ranks; expected a number, 0 or more",
    "{algorithm}：rank 数为 {size} 时 {name}= 的结果为 {amount}；应为不小于 0 的整数",
)

# Calls.
BAD_SIZE = Template(
    "algorithms.bad_size",
    "{algorithm}: size is {size}; expected a whole number of ranks, 1 or more",
    "{algorithm}：size 为 {size}；应为 rank 数，即不小于 1 的整数",
)
NO_OPTION = Template(
    "algorithms.no_option",
    "{algorithm}: there is no option {name}; the options are: {options}",
    "{algorithm}：没有选项 {name}；可用的选项：{options}",
)
NONE = Template("algorithms.none", "none", "无")
BAD_ROOT = Template(
    "algorithms.bad_root",
    "{algorithm}: root={root}; expected the number of a rank",
    "{algorithm}：root={root}；应为 rank 编号",
)
ROOT_WITHOUT_NEED = Template(
    "algorithms.root_without_need",
    "{algorithm}: root={root} was given, but {collective} has no root; leave it out",
    "{algorithm}：给出了 root={root}，但 {collective} 没有根 rank；请去掉它",
)
CANNOT_SERVE = Template(
    "algorithms.cannot_serve",
    "{algorithm}: not declared for {size} ranks; up to 16 ranks it is declared for: {served}. Algorithms for {size} "
    "ranks: {others}",
    "{algorithm}：没有声明支持 {size} 个 rank；在 16 个 rank 以内，它支持的 rank 数为：{served}。支持 {size} 个 "
    "rank 的算法：{others}",
)

# Options of built-in algorithms.
BAD_FACTORS = Template(
    "algorithms.bad_factors",
    "{algorithm}: factors={factors} with {size} ranks; expected numbers whose product is {size}, such as {example}",
    "{algorithm}：{size} 个 rank 时 factors={factors}；应为乘积等于 {size} 的一组数，例如 {example}",
)
BAD_NODE = Template(
    "algorithms.bad_node",
    "hierarchical: node={node}; expected a number of ranks, 1 or more, one such number for each node, or the ranks "
    "of each node",
    "hierarchical：node={node}；应为每个节点的 rank 数（不小于 1），或逐个给出各节点的 rank 数，或列出各节点的 "
    "rank 编号",
)
BAD_NODES = Template(
    "algorithms.bad_nodes",
    "hierarchical: node={node} has {total} ranks in all, with {size} ranks; expected numbers of 1 or more that add "
    "up "
    "to {size}",
    "hierarchical：node={node} 合计 {total} 个 rank，而 rank 数为 {size}；应为一组不小于 1、总和为 {size} 的数",
)
BAD_RANKS_OF_NODES = Template(
    "algorithms.bad_ranks_of_nodes",
    "hierarchical: node={node}, with {size} ranks; expected each rank from 0 to {last} in one node",
    "hierarchical：rank 数为 {size} 时 node={node}；0 到 {last} 的每个 rank 编号应恰好属于一个节点",
)
ONE_CHUNK_PER_RANK = Template(
    "algorithms.one_chunk_per_rank",
    "{algorithm} inside another algorithm has {chunks} chunks and {scratch} scratch slots for {size} ranks; expected "
    "{size} chunks and no scratch slots",
    "用在其他算法内部的 {algorithm} 在 {size} 个 rank 时有 {chunks} 块和 {scratch} 个暂存块；应有 {size} 块，"
    "且没有暂存块",
)
BAD_ROWS = Template(
    "algorithms.bad_rows",
    "{algorithm}: rows={rows} with {size} ranks; expected a divisor of {size}",
    "{algorithm}：{size} 个 rank 时 rows={rows}；应为 {size} 的约数",
)
