"""The sentences about a schedule in text form that cannot be read."""

from unisono.message import Template

BAD_LINE = Template(
    "schedule.bad_line",
    "{source}, line {line}: expected {expected}; found {found}",
    "{source} 第 {line} 行：应为{expected}；实际为 {found}",
)
NOT_A_SCHEDULE = Template(
    "schedule.not_a_schedule",
    "{source} is neither a Python file (.py) nor a schedule in text form, which begins with `{title}`; found {found}",
    "{source} 既不是 Python 文件（.py），也不是文本形式的调度（以 `{title}` 开头）；实际为 {found}",
)
EMPTY = Template("schedule.empty", "an empty file", "空文件")
NO_LINE = Template("schedule.no_line", "{source}: there is no line `{name} ...`", "{source}：缺少 `{name} ...` 一行")
OTHER_RANKS = Template(
    "schedule.other_ranks",
    "{source}: programs for ranks {ranks}; expected programs for {size} ranks, numbered from 0",
    "{source}：文件中有 rank {ranks} 的程序；应有从 0 开始编号的 {size} 个 rank 的程序",
)
RANK_ONCE = Template("schedule.rank_once", "rank {rank} only once", "rank {rank} 只出现一次")
A_HEADER_LINE = Template(
    "schedule.a_header_line",
    "a line such as `collective all_reduce` or `size 5`, each of them once",
    "形如 `collective all_reduce` 或 `size 5` 的一行，每种只出现一次",
)
A_STEP_LINE = Template(
    "schedule.a_step_line", "line `{number}: ...` of the program, such as `{number}: send 0 to 1`",
    "程序中的 `{number}: ...` 一行，例如 `{number}: send 0 to 1`",
)  # fmt: skip
OPS_OF_FORMS = Template(
    "schedule.ops_of_forms", "ops of the forms {forms}, separated by ;", "形如 {forms} 的动作，以 ; 分隔"
)
CHUNK_FORMS = Template("schedule.chunk_forms", "chunks such as 4, 0-3 or 0-3,6", "形如 4、0-3 或 0-3,6 的块号")
LIST_LIMIT = Template("schedule.list_limit", "at most {limit} chunks in a list", "列表中最多有 {limit} 块")
