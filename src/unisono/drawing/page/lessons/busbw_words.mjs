// The words of the page about bus bandwidth, in English and Chinese.

const en = {
  idea: "The ring below is the program that is proved and run; the counts on this page are counts of its messages.",
  sentBy: (chunks, all) => `chunks sent by each rank: ${chunks} of ${all}`,
  before: (p) =>
    `The vector of n bytes is cut into p = ${p} chunks of n/p bytes. Nothing has been sent yet. Press play and count.`,
  scattering: (step, p) =>
    `Every rank sends one chunk to its neighbour, which adds it. So far each rank has sent ${step} chunk${step === 1 ? "" : "s"}, ${step}/${p} of the vector.`,
  gathering: (step, p) =>
    `Every rank forwards one finished chunk. So far each rank has sent ${step} chunks, ${step}/${p} of the vector.`,
  half: (p) => `The reduce-scatter is finished: each rank has sent p−1 = ${p - 1} chunk${p === 2 ? "" : "s"}.`,
  end: (p, facts) =>
    `Finished: p−1 = ${p - 1} for the reduce-scatter and p−1 = ${p - 1} for the all-gather, ${2 * (p - 1)} chunks of n/${p} bytes. The verifier counts the same: ${facts} of the vector.`,
  derivation: "Derivation",
  steps: [
    {
      title: "The view of the program: algbw",
      words:
        "The program passes n bytes and has its result after t seconds. Bytes divided by time is the algorithm bandwidth.",
    },
    {
      title: "The bytes that a rank sends",
      words:
        "Count them in the ring: p−1 chunks of n/p bytes until every sum is complete on one rank, and p−1 more until every rank has all sums.",
    },
    {
      title: "The lower bound",
      words:
        "Bringing the p addends of a number together takes p−1 transfers of one number; sending their sum to the other p−1 ranks takes p−1 more. That is 2(p−1) transfers for each number, shared by p ranks: no algorithm needs fewer.",
    },
    {
      title: "The load of a link: busbw",
      words: "The bytes that pass through the link of a rank, divided by time: algbw times the factor.",
    },
    {
      title: "The use of busbw",
      words:
        "busbw can be compared with the speed of the link for any p. algbw cannot: even on perfect links it falls from the link speed with two ranks to half of it with many.",
    },
  ],
  numbers: "Your numbers",
  sliders: { ranks: "p: ranks", bytes: "n: vector size", link: "speed of a link" },
  facts: {
    factor: "factor 2(p−1)/p",
    sent: "a rank sends 2(p−1)/p · n",
    time: "minimum time t",
    algbw: "algbw = n / t",
    busbw: "busbw = algbw · factor",
  },
  numbersNote:
    "Assumes that every link always sends and receives at full speed, and that a message has no cost other than its bytes.",
  curve: "The factor by number of ranks",
  curveLabel: "Chart of the factor by number of ranks: it rises from 1 towards 2",
  curveNote: "With many ranks the factor approaches 2: every rank sends almost the whole vector twice.",
  example: "The same link, more ranks",
  exampleNote: (bytes, link) =>
    `An all-reduce of ${bytes} on links of ${link}, all of them fully used. algbw suggests that something became slower; busbw shows that nothing did.`,
  exampleHead: ["p", "time", "algbw", "busbw"],
  table: "The factor of every collective",
  tableHead: ["collective", "factor", "p = ", "why"],
  tableNote:
    "n is the size of the whole vector: the input of a rank where vectors are summed, the output of a rank where they are gathered. nccl-tests and unisono bench use the same factors.",
  why: {
    broadcast: "The whole vector must leave the root and reach every other rank.",
    scatter: "The root sends everything but its own part.",
    gather: "The root receives everything but its own part.",
    reduce:
      "Every rank but the root must send all its numbers, possibly as part of a sum; the root receives as many.",
    all_gather: "A rank receives everything but its own part.",
    reduce_scatter: "A rank sends everything but the part that it keeps.",
    all_reduce: "A reduce-scatter and an all-gather: (p−1)/p, twice.",
    all_to_all: "A rank keeps the block for itself and sends all others.",
  },
};

const zh = {
  idea: "下面的环就是经过证明并实际执行的程序；本页的数字都是数它的消息得到的。",
  sentBy: (chunks, all) => `每个 rank 已发送的块数：${chunks} / ${all}`,
  before: (p) => `n 字节的向量切成 p = ${p} 块，每块 n/p 字节。还没有发送任何数据。点击播放，数一数。`,
  scattering: (step, p) =>
    `每个 rank 向邻居发一块，邻居把它加到自己的数据上。至此每个 rank 已发送 ${step} 块，即向量的 ${step}/${p}。`,
  gathering: (step, p) => `每个 rank 把一块最终的和传下去。至此每个 rank 已发送 ${step} 块，即向量的 ${step}/${p}。`,
  half: (p) => `reduce-scatter 结束：每个 rank 已发送 p−1 = ${p - 1} 块。`,
  end: (p, facts) =>
    `完成：reduce-scatter 发 p−1 = ${p - 1} 块，all-gather 再发 p−1 = ${p - 1} 块，共 ${2 * (p - 1)} 块，每块 n/${p} 字节。验证器数出的结果相同：向量的 ${facts} 倍。`,
  derivation: "推导",
  steps: [
    {
      title: "从程序的角度看：算法带宽 algbw",
      words: "程序交出 n 字节，t 秒后得到结果。字节数除以时间就是算法带宽。",
    },
    {
      title: "每个 rank 发送多少字节",
      words:
        "在环上数：发送 p−1 块（每块 n/p 字节）之后，每一块的和都已在某个 rank 上算完；再发送 p−1 块，所有 rank 就都有了全部的和。",
    },
    {
      title: "下界",
      words:
        "把同一个数的 p 个加数汇到一处，需要传送 p−1 个数；再把总和发给其余 p−1 个 rank，又需要传送 p−1 个。每个数共需 2(p−1) 次传送，由 p 个 rank 分摊：没有算法能比这更少。",
    },
    {
      title: "链路的负载：总线带宽 busbw",
      words: "经过每个 rank 的链路的字节数除以时间，也就是 algbw 乘以系数。",
    },
    {
      title: "busbw 的用途",
      words:
        "无论 p 是多少，busbw 都可以直接与链路速度比较，algbw 则不行：即使链路完全用满，两个 rank 时它等于链路速度，rank 越多就越低，最后接近链路速度的一半。",
    },
  ],
  numbers: "换成你的数字",
  sliders: { ranks: "p：rank 数", bytes: "n：向量大小", link: "链路速度" },
  facts: {
    factor: "系数 2(p−1)/p",
    sent: "每个 rank 发送 2(p−1)/p · n",
    time: "最短时间 t",
    algbw: "algbw = n / t",
    busbw: "busbw = algbw · 系数",
  },
  numbersNote: "假设每条链路始终以全速收发，并且消息除字节数以外没有其他开销。",
  curve: "系数与 rank 数的关系",
  curveLabel: "系数随 rank 数变化的曲线：从 1 趋近 2",
  curveNote: "rank 很多时系数接近 2：每个 rank 几乎要把整个向量发送两遍。",
  example: "同样的链路，更多的 rank",
  exampleNote: (bytes, link) =>
    `在速度为 ${link} 的链路上对 ${bytes} 做 all-reduce，所有链路都用满。只看 algbw，似乎变慢了；而 busbw 表明并没有变慢。`,
  exampleHead: ["p", "时间", "algbw", "busbw"],
  table: "各个集合通信操作的系数",
  tableHead: ["集合通信操作", "系数", "p = ", "原因"],
  tableNote:
    "n 指整个向量的大小：对求和类集合通信操作，指每个 rank 的输入；对收集类集合通信操作，指每个 rank 的输出。这些系数与 nccl-tests 以及 unisono bench 相同。",
  why: {
    broadcast: "整个向量都要离开根 rank，并到达其他每个 rank。",
    scatter: "根 rank 发出除自己那份以外的全部数据。",
    gather: "根 rank 收到除自己那份以外的全部数据。",
    reduce: "除根 rank 外，每个 rank 都要发出自己的全部数据（可以是作为和的一部分）；根 rank 接收同样多的数据。",
    all_gather: "每个 rank 收到除自己那份以外的全部数据。",
    reduce_scatter: "每个 rank 发出除自己保留的那份以外的全部数据。",
    all_reduce: "一次 reduce-scatter 加一次 all-gather：两个 (p−1)/p。",
    all_to_all: "每个 rank 留下给自己的那一块，发出其余各块。",
  },
};

export const BUSBW_WORDS = { en, zh };
