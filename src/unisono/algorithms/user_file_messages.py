"""The messages of ``user_files.py``, in English and Chinese."""

from unisono.message import Template

NO_FILE = Template("algorithms.no_file", "there is no file {path!r}", "找不到文件 {path!r}")
NOT_TEXT = Template(
    "algorithms.not_text", "{file}: the file cannot be read as text: {error}", "{file}：无法作为文本读取：{error}"
)
FILE_FAILED = Template("algorithms.file_failed", "{file}, line {line}: {error}", "{file} 第 {line} 行：{error}")
SEVERAL_IN_FILE = Template(
    "algorithms.several_in_file",
    "{file} declares {count} algorithms; add a colon and the name of one of them: {names}",
    "{file} 声明了 {count} 个算法；请在冒号后写明是哪一个：{names}",
)
SEVERAL_OF_COLLECTIVE = Template(
    "algorithms.several_of_collective",
    "{file} declares {count} algorithms of {collective}; add a colon and the name of one of them: {names}",
    "{file} 声明了 {count} 个 {collective} 算法；请在冒号后写明是哪一个：{names}",
)
NONE_IN_FILE = Template(
    "algorithms.none_in_file",
    "{file} declares no algorithm; expected a generator decorated with @algorithm(...)",
    "{file} 中没有算法；应有一个带 @algorithm(...) 装饰器的生成器",
)
NONE_OF_COLLECTIVE = Template(
    "algorithms.none_of_collective",
    "{file} declares no algorithm of {collective}; it declares {names}",
    "{file} 中没有 {collective} 的算法；其中有 {names}",
)
OTHER_COLLECTIVE = Template(
    "algorithms.other_collective",
    "{name}: {found} is not an algorithm of {collective}",
    "{name}：{found} 不是 {collective} 的算法",
)
NOT_DECLARED = Template(
    "algorithms.not_declared",
    "{file}: {name} is not declared as an algorithm; write @algorithm(all_reduce, ...) above it",
    "{file}：{name} 没有声明为算法；请在它上面写 @algorithm(all_reduce, ...)",
)
NOT_IN_FILE = Template(
    "algorithms.not_in_file",
    "{file} has no algorithm {name!r}; it declares {names}",
    "{file} 中没有算法 {name!r}；其中有 {names}",
)
MEANT_IN_FILE = Template(
    "algorithms.meant_in_file",
    "{file} has no algorithm {name!r}; did you mean {near!r}?",
    "{file} 中没有算法 {name!r}；是否想写 {near!r}？",
)
WRITTEN_FOR = Template(
    "algorithms.written_for",
    "{name}: this file is a schedule for {size} ranks; expected -n {size}, found {found}",
    "{name}：该文件是 {size} 个 rank 的调度；应为 -n {size}，实际为 {found}",
)
WRITTEN_WITH_ROOT = Template(
    "algorithms.written_with_root",
    "{name}: this file is a schedule with root {root}; found root {found}",
    "{name}：该文件是根 rank 为 {root} 的调度；实际给出的根 rank 为 {found}",
)
WRITTEN_NO_OPTIONS = Template(
    "algorithms.written_no_options",
    "{name}: a schedule in text form has no options; found {options}",
    "{name}：文本形式的调度没有选项；实际给出了 {options}",
)
# The problems that a watch reports; the watch adds the time.
STILL_LOADING = Template("algorithms.still_loading", "{file} is still loading", "{file} 仍未加载完")
NO_STEP_YET = Template("algorithms.no_step_yet", "the program has not yielded a step", "程序还没有产生下一步")
NOT_RETURNED_YET = Template("algorithms.not_returned_yet", "{name}= has not returned", "{name}= 还没有返回")
NO_ALGORITHM = Template("algorithms.no_algorithm", "no algorithm", "没有算法")
