// The words of the pages, in English and Chinese. A function takes the values that appear in its sentence.

export const LANGUAGES = { en: "English", zh: "中文" };

const en = {
  ranks: (count) => `${count} rank${count === 1 ? "" : "s"}`,
  rank: (rank) => `rank ${rank}`,
  node: (node) => `node ${node}`,
  row: { data: "chunk", input: "chunk", output: "out", scratch: "scratch" },
  root: (rank) => `root: rank ${rank}`,
  language: "Language",
  theme: "Theme",
  themes: { auto: "System", light: "Light", dark: "Dark" },
  layout: "Layout",
  layouts: { ring: "ring", line: "line", tree: "tree", grid: "grid", nodes: "nodes", matrix: "matrix" },
  labels: "Show",
  sets: { summed: "ranks summed so far", whose: "source rank", heard: "ranks known to have arrived" },
  numbers: "numbers",
  play: "Play",
  pause: "Pause",
  first: "Go to start",
  back: "Previous step",
  forward: "Next step",
  last: "Go to end",
  speed: "Speed",
  position: "Step",
  phases: "Phases",
  stepOf: (step, steps) => `Step ${step} of ${steps}`,
  before: "Before the first step",
  copyLink: "Copy link to this view",
  copied: "Copied",
  keys: "Keys: space plays, ← → step, ↑ ↓ choose a rank, Home and End, + − change the speed.",
  numbersKey: "n shows numbers.",
  present: "Present",
  presentKey: "f presents on the full screen.",
  save: "Save",
  saveStep: "Save this step as SVG",
  saveAnimation: "Save the animation as GIF",
  saveKeys: "s saves this step as SVG, g the animation as GIF.",
  leavePresentation: "Leave the presentation",
  wholePage: "Show the whole page",
  stageLabel: (label, ranks) => `${label}, ${ranks}, drawn step by step. The text on this page describes each step.`,
  legendReduce: "added to the data of the receiver",
  legendTells: "tells the receiver which ranks have arrived",
  legendCopy: "stored",
  legendSegments: "one colour for each rank summed so far",
  legendWhose: "one colour for each source rank",
  legendHeard: "one colour for each rank known to have arrived",
  legendDone: "finished",
  legendNames: {
    summed: (size) =>
      `a0: chunk a of rank 0${size > 2 ? `; Σa: sum over all ranks; Σa0–1: a0+a1; Σa 2/${size}: sum over 2 of ${size} ranks` : ""}`,
    whose: () => "a0: chunk a, from rank 0",
    heard: (size) => `{0–1}: ranks 0 and 1; 2/${size}: 2 of ${size} ranks; ✓: all ranks`,
  },
  legendHeat: "darker: more ranks summed",
  beforeWords: (what) => `Nothing has been sent yet. ${what}`,
  holds: {
    reduces: (size) =>
      size > 1
        ? "Every rank holds its own data: a0 is chunk a of rank 0, a1 that of rank 1."
        : "Rank 0 holds its data.",
    rooted: (rank) => `Rank ${rank} holds everything: a${rank} is its chunk a.`,
    own: "Every rank holds its own chunk: rank 0 holds a0.",
    letters: "Every rank holds one block for each rank; the number is the sender: a0, b0, ... come from rank 0.",
    barrier: "Every rank knows only of its own arrival.",
  },
  afterWords: {
    every: "Finished: every rank has its result.",
    root: (rank) => `Finished: the root, rank ${rank}, has the result.`,
    barrier: "Finished: every rank knows that all ranks have arrived.",
  },
  summary: (messages, added, stored, local) => {
    const parts = [];
    if (added) parts.push(`${added} added on arrival`);
    if (stored) parts.push(`${stored} stored`);
    const only = added ? "added on arrival" : "stored on arrival";
    const effect = added && stored ? `: ${parts.join(", ")}` : `, ${only}`;
    const moved = messages ? `${messages} message${messages === 1 ? "" : "s"}${effect}.` : "";
    const inside = local ? `${local} rank${local === 1 ? " computes" : "s compute"} locally.` : "";
    return [moved, inside].filter(Boolean).join(" ");
  },
  more: (count) => `… and ${count} more. Choose a rank to see what it does.`,
  everyone: "all ranks",
  choose: "Rank",
  idle: (rank) => `Rank ${rank} does nothing in this step.`,
  code: "The program",
  codeOf: (rank) => `The program, as rank ${rank} runs it`,
  backwards: "run backwards",
  noCode: "This schedule was read from a text file. These are the steps of the rank.",
  facts: "Facts",
  proved: "Proved for every timing",
  provedNote: "Nothing is missing, nothing is counted twice, and no rank waits forever.",
  failed: "Not proved",
  factSteps: "steps",
  factRounds: "rounds",
  factBytes: "bytes through the busiest rank",
  factMessages: "messages",
  factMemory: "extra memory",
  factAgreement: "agreement",
  agreement: "every rank ends with the same bits",
  ofVector: (text) => `${text} of the vector`,
  none: "none",
  least: (ratio) => `${ratio}× the lower bound`,
  atLeast: "equals the lower bound",
  stepsNote: "(on the busiest rank)",
  roundsNote: "if a rank sends and receives one message at a time",
  messagesNote: (most) => `at most ${most} sent by one rank`,
  addedAs: "order of additions",
  contents: "Contents of every rank, as a table",
  slot: (name, index) =>
    ({ data: `chunk ${index}`, input: `chunk ${index}`, output: `output ${index}`, scratch: `scratch ${index}` })[
      name
    ],
  nothing: "nothing",
  failure: {
    UnmatchedError: "A message and its receive do not match.",
    DeadlockError: "Ranks wait for each other, and none can continue (deadlock).",
    HazardError: "The reads and writes of a step conflict.",
    GoalError: "The result is missing, wrong, or not the same everywhere.",
    ScheduleError: "This program cannot run to its end.",
  },
  failureAt: (rank, step, shown) => `Rank ${rank}, step ${step} of its program (step ${shown} on this page).`,
  expected: "expected",
  found: "found",
  hint: "hint",
  manyRanks: "ranks",
  legendCounts: { summed: "ranks summed in the chunk", heard: "ranks known to have arrived" },
  legendAll: { summed: "all ranks summed", heard: "all ranks known to have arrived" },
  legendWritten: "written in this step",
  held: ({ reduces, carries_data: carriesData }, held, size) => {
    if (!held) return "nothing";
    if (!carriesData) return `knows of ${held} of ${size} ranks`;
    return reduces ? `the sum over ${held} of ${size} ranks` : `from rank ${held - 1}`;
  },
  outlineSent: (rank, dst, what) => `Rank ${rank} sends ${what} to rank ${dst}.`,
  outlineGot: (rank, src, what, adds) =>
    `Rank ${rank} receives ${what} from rank ${src} and ${adds ? "adds" : "stores"} it.`,
  outlineLocal: (rank, amount) => `Rank ${rank} computes locally on ${amount} chunk${amount === 1 ? "" : "s"}.`,
  aMessage: "a message",
  someChunks: (amount) => `${amount} chunks`,
  matrixNote: "Too much for the stage.",
  matrixRows: "One row for each rank, one column for each chunk. Hover over a cell to read it.",
  compared: (count) => `${count} algorithms compared`,
  lockstep: "Synchronised",
  byStep: "by step",
  byTime: "by time",
  doneAfterSteps: (steps) => `finished after ${steps} step${steps === 1 ? "" : "s"}`,
  doneAfter: (time, place) => `finished after ${time} · ${["1st", "2nd", "3rd"][place - 1] ?? `${place}th`}`,
  timeOf: (now, all) => `${now} of ${all}`,
  clock: "Clock",
  network: "Network",
  model: "α–β model (sliders)",
  simulatedOn: (title) => `Times come from the simulator. Network: ${title}.`,
  clockNote: "A message takes α + bytes · β; a rank sends and receives one message at a time.",
  sliders: { alpha: "α: per message", beta: "β: per byte", bytes: "vector size" },
  finish: "Finishing order",
  costs: (facts) => `${facts.rounds} rounds, ${facts.bytes.text} of the vector`,
  winner: ([name, ...others], conditions, time) => {
    const where = conditions.length ? `${conditions.join(", ")}: ` : "";
    return others.length
      ? `${where}${name} and ${others.join(", ")} finish together, after ${time}.`
      : `${where}${name} finishes first, after ${time}.`;
  },
  crossing: (name, bytes) => `From ${bytes} on, ${name} is the fastest.`,
  chart: "Time by vector size",
  chartOn: (network) => `Time by vector size on ${network}`,
  chartNote: "Circles mark where another algorithm becomes the fastest. Click in the chart to choose a size.",
  chartLabel: (names) => `Chart of time by vector size for ${names}`,
  galleryTitle: "How ranks communicate",
  galleryStory: "Collective communication, one algorithm at a time.",
  galleryIdea: "Every page is made from the program that is proved and run. Choose one and press play.",
  indexContents: "Contents",
  indexCourse: "Course",
  indexAnchor: (name) => `Link to ${name}`,
  compareThem: "compare",
  cardRounds: (rounds, ratio) => `${rounds} rounds (${ratio ? `${ratio}× the lower bound` : "the lower bound"})`,
  cardBytes: (ratio) => `, bytes: ${ratio ? `${ratio}× the lower bound` : "the lower bound"}`,
  madeBy: "Made by unisono draw from the program that runs.",
  allPages: "All algorithms",
};

const zh = {
  ranks: (count) => `${count} 个 rank`,
  rank: (rank) => `rank ${rank}`,
  node: (node) => `节点 ${node}`,
  row: { data: "块", input: "块", output: "输出", scratch: "暂存块" },
  root: (rank) => `根 rank：${rank}`,
  language: "语言",
  theme: "主题",
  themes: { auto: "跟随系统", light: "浅色", dark: "深色" },
  layout: "布局",
  layouts: { ring: "环", line: "一字排开", tree: "树", grid: "网格", nodes: "节点", matrix: "矩阵" },
  labels: "显示",
  sets: { summed: "已累加的 rank", whose: "来源 rank", heard: "已知到达的 rank" },
  numbers: "数值",
  play: "播放",
  pause: "暂停",
  first: "回到开始",
  back: "上一步",
  forward: "下一步",
  last: "跳到结尾",
  speed: "速度",
  position: "位置",
  phases: "阶段",
  stepOf: (step, steps) => `第 ${step} 步，共 ${steps} 步`,
  before: "开始之前",
  copyLink: "复制此画面的链接",
  copied: "已复制",
  keys: "快捷键：空格播放或暂停，← → 上一步、下一步，↑ ↓ 选择 rank，Home、End 跳到首尾，+ − 调整速度。",
  numbersKey: "n 显示或隐藏数值。",
  present: "放映",
  presentKey: "f 全屏放映。",
  save: "保存",
  saveStep: "把这一步保存为 SVG",
  saveAnimation: "把动画保存为 GIF",
  saveKeys: "s 把这一步保存为 SVG，g 把动画保存为 GIF。",
  leavePresentation: "结束放映",
  wholePage: "显示完整页面",
  stageLabel: (label, ranks) => `${label}，${ranks}，逐步演示。页面上的文字说明每一步。`,
  legendReduce: "与接收方的数据相加",
  legendTells: "告知接收方哪些 rank 已到达",
  legendCopy: "直接存入",
  legendSegments: "每种颜色代表一个已累加的 rank",
  legendWhose: "每种颜色代表数据来自哪个 rank",
  legendHeard: "每种颜色代表一个已知到达的 rank",
  legendDone: "已完成",
  legendNames: {
    summed: (size) =>
      `a0：rank 0 的块 a${size > 2 ? `；Σa：所有 rank 之和；Σa0–1：a0+a1；Σa 2/${size}：${size} 个 rank 中 2 个之和` : ""}`,
    whose: () => "a0：来自 rank 0 的块 a",
    heard: (size) => `{0–1}：rank 0 和 1；2/${size}：${size} 个 rank 中的 2 个；✓：所有 rank`,
  },
  legendHeat: "颜色越深，已累加的 rank 越多",
  beforeWords: (what) => `还没有发送任何数据。${what}`,
  holds: {
    reduces: (size) =>
      size > 1 ? "每个 rank 只有自己的数据：a0 是 rank 0 的块 a，a1 是 rank 1 的块 a。" : "rank 0 持有自己的数据。",
    rooted: (rank) => `全部数据都在 rank ${rank} 上：a${rank} 是它的块 a。`,
    own: "每个 rank 持有自己的一块数据：rank 0 持有 a0。",
    letters: "每个 rank 持有发给各 rank（包括自己）的数据，每个 rank 一块；数字表示发送方：a0、b0……来自 rank 0。",
    barrier: "每个 rank 只知道自己已到达。",
  },
  afterWords: {
    every: "完成：每个 rank 都得到了结果。",
    root: (rank) => `完成：根 rank（rank ${rank}）得到了结果。`,
    barrier: "完成：每个 rank 都知道所有 rank 已到达。",
  },
  summary: (messages, added, stored, local) => {
    const parts = [];
    if (added) parts.push(`${added} 条到达后相加`);
    if (stored) parts.push(`${stored} 条到达后直接存入`);
    const only = added ? "到达后相加" : "到达后直接存入";
    const effect = added && stored ? `，其中 ${parts.join("，")}` : `，${only}`;
    const moved = messages ? `${messages} 条消息${effect}。` : "";
    const inside = local ? `${local} 个 rank 在本地计算。` : "";
    return moved + inside;
  },
  more: (count) => `……另有 ${count} 条。选择一个 rank 可查看它的动作。`,
  everyone: "全部 rank",
  choose: "选择 rank",
  idle: (rank) => `rank ${rank} 在这一步没有动作。`,
  code: "程序",
  codeOf: (rank) => `程序（rank ${rank} 的执行情况）`,
  backwards: "倒序执行",
  noCode: "这个调度是从文本文件读入的。以下是该 rank 的各个步骤。",
  facts: "要点",
  proved: "已证明：任何时序下都正确",
  provedNote: "数据不遗漏、不重复，也没有 rank 会永远等待。",
  failed: "未通过证明",
  factSteps: "步数",
  factRounds: "轮数",
  factBytes: "最忙的 rank 的单向字节数（发送、接收取较大者）",
  factMessages: "消息数",
  factMemory: "额外内存",
  factAgreement: "一致性",
  agreement: "所有 rank 的结果逐位一致",
  ofVector: (text) => `整个向量的 ${text} 倍`,
  none: "无",
  least: (ratio) => `下界的 ${ratio} 倍`,
  atLeast: "达到下界",
  stepsNote: "（步数最多的 rank）",
  roundsNote: "假设每个 rank 同一时刻只发一条、收一条消息",
  messagesNote: (most) => `单个 rank 最多发送 ${most} 条`,
  addedAs: "相加顺序",
  contents: "以表格显示每个 rank 的数据",
  slot: (name, index) =>
    ({ data: `块 ${index}`, input: `块 ${index}`, output: `输出 ${index}`, scratch: `暂存块 ${index}` })[name],
  nothing: "空",
  failure: {
    UnmatchedError: "有一条消息找不到与之匹配的接收。",
    DeadlockError: "rank 互相等待，都无法继续（死锁）。",
    HazardError: "某一步中的读写互相冲突。",
    GoalError: "结果缺失、错误，或在各 rank 上不一致。",
    ScheduleError: "这个程序无法运行到结束。",
  },
  failureAt: (rank, step, shown) => `rank ${rank} 的程序的第 ${step} 步（对应本页的第 ${shown} 步）。`,
  expected: "应为",
  found: "实际",
  hint: "建议",
  manyRanks: "各 rank",
  legendCounts: { summed: "个 rank 已累加到该块", heard: "个 rank 已知到达" },
  legendAll: { summed: "已累加全部 rank", heard: "已知全部 rank 到达" },
  legendWritten: "这一步写入",
  held: ({ reduces, carries_data: carriesData }, held, size) => {
    if (!held) return "空";
    if (!carriesData) return `已知 ${size} 个 rank 中的 ${held} 个到达`;
    return reduces ? `${size} 个 rank 中 ${held} 个之和` : `来自 rank ${held - 1}`;
  },
  outlineSent: (rank, dst, what) => `rank ${rank} 把${what}发给 rank ${dst}。`,
  outlineGot: (rank, src, what, adds) =>
    `rank ${rank} 收到 rank ${src} 的${what}，${adds ? "加到自己的数据上" : "直接存入"}。`,
  outlineLocal: (rank, amount) => `rank ${rank} 在本地处理 ${amount} 块。`,
  aMessage: "一条消息",
  someChunks: (amount) => ` ${amount} 块数据`,
  matrixNote: "内容太多，无法逐个画出。",
  matrixRows: "每行表示一个 rank，每列表示一块。把鼠标移到格子上可查看内容。",
  compared: (count) => `${count} 种算法的比较`,
  lockstep: "同步方式",
  byStep: "按步",
  byTime: "按时间",
  doneAfterSteps: (steps) => `第 ${steps} 步之后完成`,
  doneAfter: (time, place) => `${time} 后完成 · 第 ${place} 名`,
  timeOf: (now, all) => `${now}，共 ${all}`,
  clock: "时钟",
  network: "网络",
  model: "α–β 模型（滑块）",
  simulatedOn: (title) => `时间由模拟器计算。网络：${title}。`,
  clockNote: "一条消息耗时 α + 字节数 · β；每个 rank 同一时刻只发一条、收一条消息。",
  sliders: { alpha: "α：每条消息", beta: "β：每个字节", bytes: "向量大小" },
  finish: "完成顺序",
  costs: (facts) => `${facts.rounds} 轮，向量的 ${facts.bytes.text} 倍`,
  winner: ([name, ...others], conditions, time) => {
    const where = conditions.length ? `${conditions.join("，")}：` : "";
    return others.length
      ? `${where}${name} 与 ${others.join("、")} 同时最先完成，用时 ${time}。`
      : `${where}${name} 最先完成，用时 ${time}。`;
  },
  crossing: (name, bytes) => `从 ${bytes} 起，${name} 最快。`,
  chart: "耗时与向量大小的关系",
  chartOn: (network) => `${network} 上耗时与向量大小的关系`,
  chartNote: "圆圈处最快的算法发生改变。点击图中任意位置，可选择对应的向量大小。",
  chartLabel: (names) => `${names} 的耗时随向量大小变化的曲线`,
  galleryTitle: "rank 之间如何通信",
  galleryStory: "集合通信，一次看懂一个算法。",
  galleryIdea: "每个页面都由经过证明、实际执行的程序生成。选一个页面，点击播放。",
  indexContents: "目录",
  indexCourse: "课程",
  indexAnchor: (name) => `${name} 的链接`,
  compareThem: "比较",
  cardRounds: (rounds, ratio) => `${rounds} 轮（${ratio ? `下界的 ${ratio} 倍` : "达到下界"}）`,
  cardBytes: (ratio) => `，字节数${ratio ? `为下界的 ${ratio} 倍` : "达到下界"}`,
  madeBy: "由 unisono draw 根据实际执行的程序生成。",
  allPages: "全部算法",
};

export const WORDS = { en, zh };

/** The language that the browser prefers. */
export function browserLanguage(languages) {
  for (const language of languages) {
    if (/^zh\b/i.test(language)) return "zh";
    if (/^en\b/i.test(language)) return "en";
  }
  return "en";
}
