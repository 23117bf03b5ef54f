// The words of the page about a mixture of experts, in English and Chinese: its moments, and the table of rows.

const en = {
  begin: (ranks) =>
    `Every rank holds one of ${ranks} experts, a copy of the router, and the Adam state of both. Each rank has different rows.`,
  forward: {
    router: () =>
      "The router of every rank gives each of its own rows a weight for every expert; the two largest win.",
    expert: () => "Every expert computes the rows that arrived for it, from all ranks. Nothing is sent.",
  },
  all_gather: (bytes) =>
    `A small all-gather, ${bytes}: every rank tells the others how many of its rows chose each expert, so that all know what will arrive.`,
  all_to_all: {
    "moe.dispatch": (bytes) =>
      `Dispatch, an all-to-all of ${bytes}: every rank sends each of its rows to the ranks of the two chosen experts. Every rank waits.`,
    "moe.combine": (bytes) =>
      `Combine, the all-to-all backwards, ${bytes}: the results return to the ranks that the rows came from, and are added there with their weights.`,
    "gradient of moe.combine": (bytes) =>
      `The gradient of each result goes to the expert that computed it: the dispatch once more, ${bytes}, with gradients.`,
    "gradient of moe.dispatch": (bytes) =>
      `The gradients of the rows return to the ranks of the rows: the combine once more, ${bytes}.`,
  },
  all_reduce: (bytes) =>
    `An all-reduce starts to average the gradient of the router, ${bytes}. The gradients of the experts are never sent: no other rank has them.`,
  loss: () => "Every rank computes the loss of its own rows. The forward pass is finished.",
  backward: {
    router: () => "Every rank computes the gradient of its router from its own rows.",
    expert: () =>
      "Every expert computes its gradient from the rows of all ranks. It is complete: nothing has to be summed.",
  },
  ready: () => "The backward pass is finished, and all routers have the same averaged gradient.",
  update: () => "Every rank updates its own expert and its router with Adam. The routers stay identical.",
  end: () => "The gradients are freed. The step is finished.",
};

const zh = {
  begin: (ranks) =>
    `每个 rank 有 ${ranks} 个专家中的一个、一份路由器，以及两者的 Adam 状态。各 rank 的行（样本）不同。`,
  forward: {
    router: () => "每个 rank 的路由器为自己的每一行算出各专家的权重，取最大的两个。",
    expert: () => "每个专家计算从各 rank 收到的行。不发送任何数据。",
  },
  all_gather: (bytes) =>
    `一次很小的 all-gather（${bytes}）：每个 rank 告诉其他 rank 自己有多少行选了哪个专家，这样大家都知道会收到多少。`,
  all_to_all: {
    "moe.dispatch": (bytes) =>
      `分发：一次 all-to-all（${bytes}），每个 rank 把自己的每一行发给所选的两个专家所在的 rank。所有 rank 都要等待。`,
    "moe.combine": (bytes) => `合并：方向相反的 all-to-all（${bytes}），结果回到各行原来的 rank，在那里按权重相加。`,
    "gradient of moe.combine": (bytes) =>
      `每个结果的梯度发给算出它的专家：与分发的路线相同，${bytes}，只是发的是梯度。`,
    "gradient of moe.dispatch": (bytes) => `各行的梯度回到该行所在的 rank：与合并的路线相同，${bytes}。`,
  },
  all_reduce: (bytes) =>
    `开始对路由器的梯度做 all-reduce（${bytes}），求平均。专家的梯度从不发送：别的 rank 没有这个专家。`,
  loss: () => "每个 rank 计算自己各行的损失。前向传播结束。",
  backward: {
    router: () => "每个 rank 根据自己的行计算路由器的梯度。",
    expert: () => "每个专家根据来自各 rank 的行计算自己的梯度，已经完整，不需要再求和。",
  },
  ready: () => "反向传播结束，各 rank 的路由器有相同的平均梯度。",
  update: () => "每个 rank 用 Adam 更新自己的专家和路由器。各 rank 的路由器保持相同。",
  end: () => "释放梯度。这个训练步结束。",
};

export const EXPERTS_NARRATION = { en, zh };

export const ROWS_WORDS = {
  en: {
    title: "Who sends how many rows to whom",
    note: "Rows of the dispatch, as recorded. A row counts once for each of its two experts. The combine sends the same rows back.",
    from: (rank) => `from rank ${rank}`,
    to: (rank) => `expert of rank ${rank}`,
    sum: "rows to compute",
    busiest: (rank, rows, mean) =>
      `The expert of rank ${rank} has the most rows, ${rows}; the mean is ${mean}. The other ranks wait for it.`,
  },
  zh: {
    title: "哪个 rank 向哪个 rank 发送多少行",
    note: "分发时各 rank 之间的行数（实际记录）。每行因选两个专家而计两次。合并时，同样的行再发回来。",
    from: (rank) => `来自 rank ${rank}`,
    to: (rank) => `rank ${rank} 的专家`,
    sum: "要计算的行数",
    busiest: (rank, rows, mean) => `rank ${rank} 的专家行数最多，为 ${rows}；平均为 ${mean}。其他 rank 都要等它。`,
  },
};
