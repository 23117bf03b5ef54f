"""The messages of ``show.py`` and ``verify.py``, in English and Chinese."""

from unisono.message import Template

# show.py: headings
TITLE = Template("cli.show_title", "{label} on {size} ranks", "{label}，{size} 个 rank")
TITLE_OF_ONE = Template("cli.show_title_of_one", "{label} on {size} rank", "{label}，{size} 个 rank")
WITH_IDEA = Template("cli.show_with_idea", "{title}: {idea}", "{title}：{idea}")
RANK = Template("cli.show_rank", "rank {rank}", "rank {rank}")
BEFORE = Template("cli.show_before", "before", "开始")
AFTER_LEVEL = Template("cli.show_after_level", "after level {level}", "层级 {level} 之后")
STEP = Template("cli.show_step", "step (send CHUNK to RANK)", "步骤（send 块号 to rank）")
OP_TO = Template("cli.show_op_to", "{kind} {chunks} to rank {rank}", "{kind} {chunks}到 rank {rank}")
OP_FROM = Template("cli.show_op_from", "{kind} {chunks} from rank {rank}", "{kind} {chunks}，来自 rank {rank}")
OP_COPY = Template("cli.show_op_copy", "{kind} {chunks} to {other}", "{kind} {chunks}到{other}")
OP_COMBINE = Template("cli.show_op_combine", "{kind} {chunks} into {other}", "{kind} {chunks}并入{other}")
ONE_CHUNK = Template("cli.show_one_chunk", "chunk {chunks}", "第 {chunks} 块")
SEVERAL_CHUNKS = Template("cli.show_several_chunks", "chunks {chunks}", "第 {chunks} 块")
LEGEND = Template("cli.show_legend", "number of ranks combined in a value: ", "数值中已累加的 rank 数：")
REPEATED = Template("cli.show_repeated", "{ranks} twice", "{ranks} 重复")
REPEATED_LEGEND = Template("cli.show_repeated_legend", "a rank is counted twice", "有 rank 被重复计入")
DIVIDED = Template("cli.show_divided", "divided by {size}, on each rank:", "除以 {size} 之后，各 rank 的结果：")
NOT_PROVED = Template("cli.not_proved", "NOT PROVED", "未通过证明")
TOO_LARGE_TO_PROVE = Template(
    "cli.too_large_to_prove",
    "not checked here: a proof for {size} ranks takes long; run `unisono verify {name} -n {size}`",
    "此处未做证明：{size} 个 rank 的证明耗时较长；请运行 `unisono verify {name} -n {size}`",
)

# show.py: errors
NO_SUCH_RANK = Template(
    "cli.show_no_such_rank",
    "--rank {rank} with {size} ranks; expected a rank from 0 to {last}",
    "{size} 个 rank 时 --rank {rank}；应为 0 到 {last} 之间的 rank 编号",
)
TOO_MANY_RANKS = Template(
    "cli.show_too_many_ranks",
    "show -n {size}: the programs of all ranks are too long to read; expected -n {most} or less, or one rank with "
    "--rank R",
    "show -n {size}：全部 rank 的程序太长，无法阅读；-n 应不大于 {most}，或用 --rank R 只看一个 rank",
)
TOO_MANY_CELLS = Template(
    "cli.show_too_many_cells",
    "{algorithm}: {size} ranks with {slots} slots each are too many to show; --data shows at most {most} slots in "
    "all",
    "{algorithm}：{size} 个 rank，每个 {slots} 个槽，无法全部显示；--data 最多显示 {most} 个槽",
)

# verify.py
ALGORITHM = Template("cli.verify_algorithm", "algorithm", "算法")
PROOFS = Template("cli.verify_proofs", "proofs", "证明数")
CACHED = Template("cli.verify_cached", "cached", "已缓存")
SECONDS = Template("cli.verify_seconds", "seconds", "秒")
SIZES = Template("cli.verify_sizes", "sizes", "rank 数")
ROUNDS = Template("cli.verify_rounds", "rounds", "轮数")
ROUNDS_RATIO = Template("cli.verify_rounds_ratio", "vs\nleast", "与下界\n之比")
BYTES_RATIO = Template("cli.verify_bytes_ratio", "bytes\nvs least", "字节与\n下界之比")
NO_SIZES = Template("cli.verify_no_sizes", "none", "无")
NOTE = Template("cli.verify_note", "[yellow]note[/] {name}: {note}", "[yellow]注意[/] {name}：{note}")
LARGEST_SIZE = Template(
    "cli.verify_largest_size",
    "Rounds and bytes are those of the largest size.",
    "轮数和字节数是最大 rank 数时的值。",
)
MORE_FAILED = Template(
    "cli.verify_more_failed", "(and {count} more sizes or roots)", "（另有 {count} 个 rank 数或根 rank 失败）"
)
NOT_DECLARED = Template(
    "cli.verify_not_declared",
    "skipped for {sizes} ranks: the algorithm is not declared for them",
    "已跳过 {sizes} 个 rank：该算法没有声明支持这些 rank 数",
)
TOTAL = Template(
    "cli.verify_total",
    "{proved} proved, {failed} failed, in {seconds} s",
    "{proved} 个通过证明，{failed} 个失败，用时 {seconds} 秒",
)
WORKER_DIED = Template(
    "cli.verify_worker_died",
    "a worker process died, most likely for lack of memory; try -j 1",
    "一个工作进程意外退出，很可能是内存不足；请尝试 -j 1",
)
VERDICTS_LOST = Template(
    "cli.verify_verdicts_lost",
    "{found} verdicts on {expected} proofs: some were lost",
    "{expected} 个证明只返回了 {found} 个结论：有结论丢失",
)
