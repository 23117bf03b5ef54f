// The words of the pages about training steps, in English and Chinese; training_narration.mjs has the sentences about moments.

const en = {
  recorded: (ranks) => `Recorded on ${ranks} real ranks: when each collective ran, and what every rank held.`,
  data: "float32, Adam",
  phase: { forward: "forward", backward: "backward", update: "update" },
  memory: "allocated memory",
  kinds: {
    parameters: "parameters",
    gradients: "gradients",
    optimizer: "optimiser state",
    gathered: "gathered parameters of other ranks",
    activations: "activations, kept for the backward pass",
    empty: "allocated, currently empty",
  },
  own: "pale: the gradient of this rank alone, not yet summed over the ranks",
  stage: (layers, ranks) =>
    `${ranks} ranks, ${layers} layers each. The text on this page describes the current moment.`,
  layer: (at) => `layer ${at}`,
  splits: { column: "A: by columns", row: "B: by rows", router: "router", expert: "experts", "": "activation" },
  barLabel: (rank, total, parts) => `rank ${rank} holds ${total}: ${parts.join(", ")}`,
  timeline: "The whole step",
  timelineNote:
    "Computation, the collectives that run at the same time, and the memory of a rank. Click to go to a moment.",
  timelineLabel: "Chart of the step: computation, collectives and memory over time",
  computes: "computes",
  sends: "communicates",
  holds: "holds",
  allOnOne: (bytes) => `all on one rank: ${bytes}`,
  loss: "loss",
  adam: "Adam",
  log: "The collectives of this step",
  logHead: ["collective", "tensor", "bytes"],
  logNote:
    "Bytes of the tensor. The part that a rank sends depends on the collective: 2(p−1)/p for all-reduce, (p−1)/p for the others.",
  sentSoFar: "each rank has sent so far",
  heldNow: "and now holds",
  heldMost: "peak so far",
  total: (sent, held, one) =>
    `In this step each rank sent ${sent} and held ${held} of parameters, gradients and optimiser state; on a single rank that would be ${one}.`,
  recordedTitle: "This model, recorded",
  yours: "Your model",
  yoursNote: "Activations and working memory are not included.",
  sliders: {
    ranks: "p: ranks",
    parameters: "Ψ: parameters (B: billion)",
    tokens: "T: tokens in a step",
    depth: "L: layers",
  },
  precision: "bytes per parameter",
  precisions: { mixed: "mixed precision: 2 + 2 + 12", float32: "float32: 4 + 4 + 8" },
  precisionNote:
    "for the parameter, its gradient, and Adam (two averages; in mixed precision also a float32 copy of the parameter)",
  eachHolds: "each rank holds",
  eachSends: "each rank sends in a step",
  oneHolds: "all on one rank",
  measured: (bytes, uneven) =>
    uneven
      ? `measured, mean of the ranks: ${bytes}; the formula assumes equally used experts`
      : `measured: ${bytes} ✓`,
  ofOne: (part) => `${part} of it`,
  width: (text, strategy) => `h: width, ${strategy === "experts" ? "√(Ψ / 8Lp)" : "√(Ψ / 12L)"} ≈ ${text}`,
  counted: (count) => `Ψ = ${count} parameters`,
  extra: {
    data_parallel:
      "More ranks do not help a model that does not fit, since every rank holds all of it. They allow a larger batch, or a shorter step.",
    tensor_parallel:
      "Parameters that are not split (norms, the bias after a row split) are on every rank; in a large model they are few. Every rank waits for these all-reduces, so the links between the ranks should be fast.",
    zero3:
      "Working memory: two whole layers and two vectors of gradients being averaged, regardless of the depth. ZeRO-3 sends 1.5 times as much as data parallelism, most of it during computation.",
    experts:
      "One expert with 8h² parameters per rank and layer; everything else is neglected. More ranks mean more experts, while a token is computed by two of them. If one expert is chosen more often than the others, its rank is the one that all wait for.",
  },
  sentNote: {
    data_parallel: "one all-reduce of all gradients",
    tensor_parallel: "4 all-reduces of an activation, T · h numbers, in each of L layers",
    zero3: "all-gather forward, all-gather backward, reduce-scatter",
    experts: "4 all-to-alls in each of L layers: every rank sends 2 · T/p rows of h numbers in each",
  },
  extraNote: {
    experts: (bytes) => `Another ${bytes} tell the ranks how many rows each expert gets, and which gradients exist.`,
  },
  blockNote: (forward, backward, bytes) =>
    `A whole transformer layer (attention and MLP) was recorded as well: ${forward} all-reduces forward and ${backward} backward, of ${bytes} each.`,
  existName: "(which gradients exist)",
  gradientOf: (name) => `gradient of ${name}`,
  existNote: (bytes) => `Another ${bytes} tell the ranks which gradients exist.`,
  why: "Why nothing is sent between column and row",
  whySteps: [
    "Every rank has the whole X and some columns of A. A column of the product depends only on that column of A, so each rank computes some columns of the product completely.",
    "The activation function works on one number at a time, so it can be applied to a part.",
    "Row j of B is multiplied only with column j of its input, and a rank has exactly the columns that its rows of B need. The results are addends of Y; summing them is the only all-reduce.",
  ],
  whyBack:
    "The backward pass is the mirror image: every rank has the whole gradient of Y, the gradients of B and A need no data from other ranks, and one all-reduce sums the addends of the gradient of X.",
  shape: (rows, columns) => `${rows} × ${columns}`,
};

const zh = {
  recorded: (ranks) => `在 ${ranks} 个真实的 rank 上记录得到：何时执行哪个集合通信操作，每个 rank 当时占用多少内存。`,
  data: "float32，Adam 优化器",
  phase: { forward: "前向", backward: "反向", update: "更新" },
  memory: "已分配的内存",
  kinds: {
    parameters: "参数",
    gradients: "梯度",
    optimizer: "优化器状态",
    gathered: "临时收集来的其他 rank 的参数",
    activations: "为反向传播保留的激活值",
    empty: "已分配，当前为空",
  },
  own: "浅色：本 rank 自己的梯度，尚未在 rank 之间求平均",
  stage: (layers, ranks) => `${ranks} 个 rank，每个 ${layers} 层。下方的文字说明正在发生什么。`,
  layer: (at) => `第 ${at} 层`,
  splits: { column: "A：按列切", row: "B：按行切", router: "路由器", expert: "专家", "": "激活函数" },
  barLabel: (rank, total, parts) => `rank ${rank} 占用 ${total}：${parts.join("、")}`,
  timeline: "整个训练步",
  timelineNote: "正在计算什么、同时在进行哪些通信、每个 rank 占用多少内存。点击任意位置可跳到该时刻。",
  timelineLabel: "训练步的时间图：计算、通信与内存",
  computes: "计算",
  sends: "通信",
  holds: "内存",
  allOnOne: (bytes) => `全部放在一个 rank 上：${bytes}`,
  loss: "损失",
  adam: "更新（Adam）",
  log: "这个训练步中的集合通信操作",
  logHead: ["集合通信操作", "张量", "字节"],
  logNote: "字节数指整个张量。每个 rank 实际发送的量取决于集合通信操作：all-reduce 为 2(p−1)/p，其他为 (p−1)/p。",
  sentSoFar: "每个 rank 至此已发送",
  heldNow: "当前占用",
  heldMost: "至此的峰值",
  total: (sent, held, one) =>
    `在这个训练步中，每个 rank 发送 ${sent}，参数、梯度和优化器状态共占用 ${held}；若全部放在一个 rank 上，则占用 ${one}。`,
  recordedTitle: "已记录的这个模型",
  yours: "换成你的模型",
  yoursNote: "不含激活值和工作内存。",
  sliders: {
    ranks: "p：rank 数",
    parameters: "Ψ：参数量（B：十亿）",
    tokens: "T：每步的 token 数",
    depth: "L：层数",
  },
  precision: "每个参数的字节数",
  precisions: { mixed: "混合精度：2 + 2 + 12", float32: "float32：4 + 4 + 8" },
  precisionNote: "依次为参数本身、梯度、Adam 状态（两个滑动平均；混合精度还有一份 float32 参数）",
  eachHolds: "每个 rank 占用",
  eachSends: "每个 rank 每步发送",
  oneHolds: "全部放在一个 rank 上",
  measured: (bytes, uneven) =>
    uneven ? `实测，各 rank 的平均值：${bytes}；公式假定各专家收到的行数相同` : `实测：${bytes} ✓`,
  ofOne: (part) => `为全部放在一个 rank 上时的 ${part}`,
  width: (text, strategy) => `h：隐藏层宽度，${strategy === "experts" ? "√(Ψ / 8Lp)" : "√(Ψ / 12L)"} ≈ ${text}`,
  counted: (count) => `Ψ = ${count} 个参数`,
  extra: {
    data_parallel:
      "增加 rank 并不能让放不下的模型放得下，因为每个 rank 都保存整个模型；但可以增大批量，或缩短每一步的时间。",
    tensor_parallel:
      "不切分的部分（归一化层、按行切分的层的偏置）每个 rank 都有一份；在大模型中这部分很小。所有 rank 都要等这些 all-reduce 完成，因此 rank 之间的链路要快。",
    zero3:
      "工作内存：两个完整的层，以及两份正在求平均的梯度，与模型深度无关。通信量是数据并行的 1.5 倍，但大部分与计算重叠。",
    experts:
      "每层每个 rank 有一个 8h² 参数的专家，其余部分忽略不计。rank 越多，专家越多，而每个 token 只由其中两个计算。如果某个专家比别的更常被选中，所有 rank 都要等它所在的 rank。",
  },
  sentNote: {
    data_parallel: "对全部梯度做一次 all-reduce",
    tensor_parallel: "L 层中每层 4 次 all-reduce，每次传一份激活值（T · h 个数）",
    zero3: "前向 all-gather、反向 all-gather、reduce-scatter",
    experts: "L 层中每层 4 次 all-to-all：每次每个 rank 发送 2 · T/p 行，每行 h 个数",
  },
  extraNote: {
    experts: (bytes) => `另有 ${bytes} 用于告知各 rank 每个专家得到多少行，以及哪些梯度存在。`,
  },
  blockNote: (forward, backward, bytes) =>
    `另外还记录了一个完整的 Transformer 层（注意力加 MLP）：前向 ${forward} 次、反向 ${backward} 次 all-reduce，每次 ${bytes}。`,
  existName: "（哪些梯度存在）",
  gradientOf: (name) => `${name} 的梯度`,
  existNote: (bytes) => `另有 ${bytes} 用于告知各 rank 哪些梯度存在。`,
  why: "为什么按列切与按行切之间不需要通信",
  whySteps: [
    "每个 rank 都有完整的 X 和 A 的若干列。乘积的每一列只取决于 A 的对应列，因此每个 rank 直接算出乘积的若干列，而且已是最终结果。",
    "激活函数对每个数单独计算，因此可以只对一部分计算。",
    "B 的第 j 行只与输入的第 j 列相乘，而每个 rank 手里的列恰好就是它那几行 B 所需要的。得到的结果是 Y 的加数，只需再求和：这是唯一的一次 all-reduce。",
  ],
  whyBack:
    "反向传播正好对称：Y 的梯度在每个 rank 上都是完整的，计算 B 和 A 的梯度不需要其他 rank 的数据，X 的梯度的各个加数由一次 all-reduce 求和。",
  shape: (rows, columns) => `${rows} × ${columns}`,
};

export const TRAINING_WORDS = { en, zh };
