"""The errors of ``unisono.draw`` and ``unisono draw``, in English and Chinese."""

from __future__ import annotations

from unisono.message import Template

NOTHING_TO_DRAW = Template(
    "drawing.nothing_to_draw",
    "there is nothing to draw; expected a name, as in draw('ring', size=5) or `unisono draw ring -n 5`, or a lesson",
    "没有要画的内容；应给出名称，例如 draw('ring', size=5) 或 `unisono draw ring -n 5`，或者给出一节课",
)
NOT_DRAWABLE = Template(
    "drawing.not_drawable",
    "cannot draw {found}; expected a name, a file, an @algorithm, a schedule or a recorded run",
    "无法绘制 {found}；应为名称、文件、@algorithm、调度或已记录的运行",
)
LESSON_ALONE = Template(
    "drawing.lesson_alone",
    "lesson {lesson!r} determines what is drawn; leave out names, size (-n), root, calls, network, bytes, step, rank "
    "and options",
    "课程页面 {lesson!r} 已经决定了要画的内容；请去掉名称、size（-n）、root、calls、网络、字节数、step、rank 和选项",
)
NO_LESSON = Template(
    "drawing.no_lesson",
    "the course has no lesson {lesson!r}; expected 1 to {count}, or one of {names}{hint}",
    "课程中没有 {lesson!r} 这一课；应为 1 至 {count}，或者 {names} 之一{hint}",
)
DID_YOU_MEAN = Template("drawing.did_you_mean", "; did you mean {near!r}?", "；是不是 {near!r}？")
PRESETS_ARE_LESSONS = Template(
    "drawing.presets_are_lessons",
    "there are no presets any more: their pages are in the course; expected --lesson NAME or draw(lesson=NAME) "
    "instead of {preset!r}, with one of {names}",
    "不再有预设页面：它们已成为课程的一部分；请用 --lesson 名称 或 draw(lesson=名称) 代替 {preset!r}，名称为 "
    "{names} 之一",
)
RUN_ALONE = Template(
    "drawing.run_alone",
    "{run}: a recorded run is drawn on its own page; leave out other names, size (-n), root, network, bytes, "
    "step, rank and options",
    "{run}：已记录的运行单独成页；请去掉其他名称、size（-n）、root、网络、字节数、step、rank 和选项",
)
CALLS_WITHOUT_RUN = Template(
    "drawing.calls_without_run",
    "calls (--calls) selects calls of a recorded run, as in `unisono draw run/ --calls 100-200`; {name} is not one",
    "calls（--calls）用于从已记录的运行中选取调用，例如 `unisono draw run/ --calls 100-200`；{name} 不是已记录的运行",
)
BYTES_WITHOUT_NETWORK = Template(
    "drawing.bytes_without_network",
    "{name}: a number of bytes has an effect only on a network\n"
    "  expected: a network as well, such as --network dgx-h100, or several algorithms to compare\n"
    "  hint:     `unisono list --networks` lists the networks",
    "{name}：只有在网络上，字节数才有意义\n"
    "  应为：同时给出网络，例如 --network dgx-h100；或给出多个算法进行比较\n"
    "  建议：`unisono list --networks` 列出所有网络",
)
NO_OPTION = Template(
    "drawing.no_option",
    "draw() has no argument {option!r}, and {names} no option {option!r}; did you mean {near}=?",
    "draw() 没有参数 {option!r}，{names} 也没有选项 {option!r}；是否想写 {near}=？",
)
NO_OPTION_LISTED = Template(
    "drawing.no_option_listed",
    "draw() has no argument {option!r}, and {names} no option {option!r}; arguments: {arguments}; options: {options}",
    "draw() 没有参数 {option!r}，{names} 也没有选项 {option!r}；参数有：{arguments}；选项有：{options}",
)
NO_OPTIONS = Template("drawing.no_options", "none", "无")
WRONG_LANGUAGE = Template(
    "drawing.wrong_language",
    "language={language!r}; expected 'en', 'zh', or None for the language of the browser",
    "language={language!r}；应为 'en'、'zh'，或 None（跟随浏览器）",
)
TOO_MANY_RANKS = Template(
    "drawing.too_many_ranks",
    "{label}: {size} ranks; a page shows at most {most}",
    "{label}：{size} 个 rank；一个页面最多显示 {most} 个",
)
NO_STEP = Template(
    "drawing.no_step",
    "{label} has no step {step}; expected 1 to {last}, or 0 for the start",
    "{label} 没有第 {step} 步；应为 1 至 {last}，或者 0（开始之前）",
)
NO_RANK = Template(
    "drawing.no_rank",
    "{label} has no rank {rank}; expected 0 to {last}",
    "{label} 没有 rank {rank}；应为 0 至 {last}",
)
VIEW_NOT_A_NUMBER = Template(
    "drawing.view_not_a_number",
    "{name}={found}; expected a whole number",
    "{name}={found}；应为整数",
)
STEP_IN_SIMULATED_TIME = Template(
    "drawing.step_in_simulated_time",
    "step {step}: a page in simulated time has moments, not steps; leave out the step or the network",
    "step {step}：按模拟时间显示的页面只有时刻，没有步；请去掉 step 或网络",
)
NO_FOLDER = Template(
    "drawing.no_folder",
    "{path!r} cannot be written: there is no folder {folder!r}; create it first",
    "无法写入 {path!r}：找不到目录 {folder!r}；请先创建",
)
NOT_WRITABLE = Template(
    "drawing.not_writable",
    "{path!r} cannot be written: {reason}; expected the name of a file",
    "无法写入 {path!r}：{reason}；应为文件名",
)
WRONG_THEME = Template(
    "drawing.wrong_theme",
    "theme={theme!r}; expected 'light' or 'dark'",
    "theme={theme!r}；应为 'light' 或 'dark'",
)
NO_BROWSER = Template(
    "drawing.no_browser",
    "no browser that can make a picture was found\n"
    "  expected: Chromium, Chrome, Edge or Brave; the page paints its picture itself\n"
    "  hint:     save the page instead (-o page.html), open it in any browser and choose {kind} below the stage",
    "找不到可用来生成图片的浏览器\n"
    "  应为：Chromium、Chrome、Edge 或 Brave；图片由页面自己画出\n"
    "  建议：改为保存页面（-o page.html），用任意浏览器打开，点击画面下方的 {kind}",
)
NO_PICTURE = Template(
    "drawing.no_picture",
    "this page cannot be saved as {kind}: it has no stage; expected the page of an algorithm, a comparison, or "
    "simulated time",
    "此页面无法保存为 {kind}：页面上没有可画的 rank；应为算法、比较或模拟时间的页面",
)
BROWSER_TOO_SLOW = Template(
    "drawing.browser_too_slow",
    "{browser} did not make the {kind} within {limit_s} s\n"
    "  hint:     save the page instead (-o page.html), open it and choose {kind} below the stage",
    "{browser} 在 {limit_s} 秒内没有生成 {kind}\n  建议：改为保存页面（-o page.html），打开后点击画面下方的 {kind}",
)
GALLERY_NOT_WRITABLE = Template(
    "drawing.gallery_not_writable",
    "{folder!r}: pages cannot be written there: {reason}",
    "{folder!r}：无法把页面写入该目录：{reason}",
)

# A recorded run.
CALL_TOO_LARGE = Template(
    "drawing.call_too_large",
    "{run}: call {numbers} ({label}) has {events:,} ops and waits; a page holds {most:,}. "
    "Draw other calls (--calls A-B), or open the whole trace in Perfetto",
    "{run}：第 {numbers} 次调用（{label}）有 {events:,} 个动作和等待；一个页面最多容纳 {most:,} 个。"
    "请画其他调用（--calls A-B），或用 Perfetto 打开整个跟踪记录",
)
NO_CALLS = Template(
    "drawing.no_calls",
    "{run}: no rank made a call; expected a run that communicates",
    "{run}：没有任何 rank 进行过调用；应为有通信的运行",
)
NO_SUCH_CALLS = Template(
    "drawing.no_such_calls",
    "{run}: there are no calls {calls}; expected some of {first}-{last}",
    "{run}：没有第 {calls} 次调用；应在 {first}-{last} 之内",
)
SOME_CALLS = Template(
    "drawing.some_calls",
    "calls {first} to {last} of {count} are drawn",
    "图中是第 {first} 至 {last} 次调用，共 {count} 次",
)
SOME_CALLS_FIT = Template(
    "drawing.some_calls_fit",
    "calls {first} to {last} of {count} are drawn; more do not fit on a page. "
    "Use --calls {following}- to see the next ones",
    "图中是第 {first} 至 {last} 次调用，共 {count} 次；一个页面放不下更多。用 --calls {following}- 查看后面的调用",
)
SOME_TRANSFERS = Template(
    "drawing.some_transfers",
    "the first {shown} of {count} sends and receives are drawn; more do not fit on a page",
    "共有 {count} 次 send 和 recv，图中只有最早的 {shown} 次；一个页面放不下更多",
)

# The command line.
PAGE_NOT_KEPT = Template(
    "drawing.page_not_kept",
    "--no-open without -o would discard the page; give it a file, such as -o page.html",
    "使用 --no-open 而不给 -o，页面不会保存；请给出文件名，例如 -o page.html",
)
GALLERY_ALONE = Template(
    "drawing.gallery_alone",
    "--all draws everything into a folder; expected -o FOLDER, and no names, --lesson, --network, --bytes, --step or "
    "--rank",
    "--all 会把全部页面写入一个目录；请用 -o 给出目录，不要给出名称、--lesson、--network、--bytes、--step 或 --rank",
)
COURSE_ALONE = Template(
    "drawing.course_alone",
    "--course draws the whole course into a folder; expected no names, -n, --all, --lesson, --network, --bytes, "
    "--step or --rank",
    "--course 会把整个课程写入一个目录；不要给出名称、-n、--all、--lesson、--network、--bytes、--step 或 --rank",
)
