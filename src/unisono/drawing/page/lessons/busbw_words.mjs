// Every word on the page about bus bandwidth, in English and Chinese.

const en = {
  idea: "The ring below is the program that is proved and executed; what is counted here is counted on its messages.",
  sentBy: (chunks, all) => `chunks that each rank has sent: ${chunks} of ${all}`,
  before: (p) =>
    `The vector of n bytes is cut into p = ${p} chunks of n/p bytes. Nobody has sent anything. Press play, and count.`,
  scattering: (step, p) =>
    `Every rank sends one chunk to its neighbour, who adds it. Each rank has sent ${step} chunk${step === 1 ? "" : "s"} by now, that is ${step}/${p} of the vector.`,
  gathering: (step, p) =>
    `Every rank passes on one chunk that is finished. Each rank has sent ${step} chunks by now, that is ${step}/${p} of the vector.`,
  half: (p) => `The reduce-scatter is over: p−1 = ${p - 1} chunk${p === 2 ? "" : "s"} sent by each rank.`,
  end: (p, facts) =>
    `Done: p−1 = ${p - 1} for the reduce-scatter and p−1 = ${p - 1} for the all-gather, ${2 * (p - 1)} chunks of n/${p} bytes. The verifier counts the same: ${facts} of the vector.`,
  derivation: "Step by step",
  steps: [
    {
      title: "What a program sees: algbw",
      words: "It hands over n bytes, and gets its answer after t seconds. Bytes by time is the algorithm bandwidth.",
    },
    {
      title: "What a rank really sends",
      words:
        "Count it in the ring: p−1 chunks of n/p bytes until every sum is complete somewhere, and p−1 more until everybody has all sums.",
    },
    {
      title: "It cannot be less",
      words:
        "To bring the p addends of a number together takes p−1 transfers of one number; to tell the other p−1 ranks their sum takes p−1 more. That is 2(p−1) for each number, and p ranks to share them: no algorithm gets by with fewer.",
    },
    {
      title: "What a link carries: busbw",
      words: "Bytes that really pass through the link of a rank, by time: algbw, times the factor.",
    },
    {
      title: "What it is good for",
      words:
        "busbw can be held against the speed of the link, whatever p is. algbw cannot: with perfect links it falls from the speed of the link, at two ranks, to half of it.",
    },
  ],
  numbers: "Your numbers",
  sliders: { ranks: "p: ranks", bytes: "n: vector size", link: "speed of a link" },
  facts: {
    factor: "factor 2(p−1)/p",
    sent: "a rank sends 2(p−1)/p · n",
    time: "time at least, t",
    algbw: "algbw = n / t",
    busbw: "busbw = algbw · factor",
  },
  numbersNote:
    "If every link sends and receives at full speed all the time, and a message costs nothing but its bytes.",
  curve: "The factor, over the number of ranks",
  curveLabel: "Chart of the factor over the number of ranks: it goes from 1 to 2",
  curveNote: "With many ranks the factor is nearly 2: nearly the whole vector leaves every rank, twice.",
  example: "The same link, more ranks",
  exampleNote: (bytes, link) =>
    `An all-reduce of ${bytes} on links of ${link}, all of them fully used. algbw looks as if something got slower; busbw says that nothing did.`,
  exampleHead: ["p", "time", "algbw", "busbw"],
  table: "Every collective has its factor",
  tableHead: ["collective", "factor", "p = ", "why"],
  tableNote:
    "n is the size of the whole vector: what everyone gives where it is summed, what everyone gets where it is gathered. These are the factors of nccl-tests, and of unisono bench.",
  why: {
    broadcast: "All of it must leave the root, and all of it must reach every other rank.",
    scatter: "The root sends everything but its own part.",
    gather: "The root receives everything but its own part.",
    reduce:
      "Every rank but the root must give away all its numbers, in one sum or another; the root takes in as many.",
    all_gather: "A rank receives everything but its own part.",
    reduce_scatter: "A rank gives away everything but the part that it keeps.",
    all_reduce: "A reduce-scatter and an all-gather: (p−1)/p, twice.",
    all_to_all: "A rank keeps the letter to itself and sends all others.",
  },
};

const zh = {
  idea: "下面的环就是经过证明、实际执行的程序；这里数的就是它的消息。",
  sentBy: (chunks, all) => `每个进程已发出的块数：${chunks} / ${all}`,
  before: (p) => `n 字节的向量切成 p = ${p} 块，每块 n/p 字节。还没有发送任何数据。按播放，一起数。`,
  scattering: (step, p) =>
    `每个进程向邻居发一块，邻居把它加到自己的数据上。至此每个进程发出了 ${step} 块，即向量的 ${step}/${p}。`,
  gathering: (step, p) =>
    `每个进程把一块已求和完毕的数据传下去。至此每个进程发出了 ${step} 块，即向量的 ${step}/${p}。`,
  half: (p) => `reduce-scatter 结束：每个进程发出了 p−1 = ${p - 1} 块。`,
  end: (p, facts) =>
    `完成：reduce-scatter 发 p−1 = ${p - 1} 块，all-gather 再发 p−1 = ${p - 1} 块，共 ${2 * (p - 1)} 块，每块 n/${p} 字节。验证器数出的结果相同：向量的 ${facts} 倍。`,
  derivation: "一步一步推导",
  steps: [
    {
      title: "程序看到的：算法带宽 algbw",
      words: "程序交出 n 字节，t 秒后得到结果。字节数除以时间就是算法带宽。",
    },
    {
      title: "每个进程实际发出多少",
      words:
        "在环上数：p−1 块（每块 n/p 字节）之后，每一项总和都已在某个进程上算完；再发 p−1 块，所有进程就都有了全部总和。",
    },
    {
      title: "不可能更少",
      words:
        "把同一个数的 p 个加数汇到一处，需要传送 p−1 个数；再把总和告诉其余 p−1 个进程，又需要 p−1 个。每个数共 2(p−1) 次传送，由 p 个进程分摊：没有算法能用得更少。",
    },
    {
      title: "链路实际承载的：总线带宽 busbw",
      words: "真正经过每个进程链路的字节数除以时间，也就是 algbw 乘以系数。",
    },
    {
      title: "它有什么用",
      words:
        "无论 p 是多少，busbw 都可以直接与链路速度比较，algbw 则不行：即使链路完全用满，它也会从两个进程时的链路速度，一路降到链路速度的一半。",
    },
  ],
  numbers: "换成你的数字",
  sliders: { ranks: "p：进程数", bytes: "n：向量大小", link: "链路速度" },
  facts: {
    factor: "系数 2(p−1)/p",
    sent: "每个进程发出 2(p−1)/p · n",
    time: "至少需要的时间 t",
    algbw: "algbw = n / t",
    busbw: "busbw = algbw · 系数",
  },
  numbersNote: "假设每条链路始终以全速收发，并且消息除字节数以外没有其他开销。",
  curve: "系数与进程数的关系",
  curveLabel: "系数随进程数变化的曲线：从 1 趋近 2",
  curveNote: "进程很多时系数接近 2：几乎整个向量都要从每个进程发出两次。",
  example: "同样的链路，更多的进程",
  exampleNote: (bytes, link) =>
    `在速度为 ${link} 的链路上对 ${bytes} 做 all-reduce，链路全部用满。只看 algbw 似乎变慢了；busbw 说明其实并没有。`,
  exampleHead: ["p", "时间", "algbw", "busbw"],
  table: "每个集合操作都有自己的系数",
  tableHead: ["集合操作", "系数", "p = ", "原因"],
  tableNote:
    "n 指整个向量的大小：求和时是每个进程给出的数据，收集时是每个进程得到的数据。这些系数与 nccl-tests 以及 unisono bench 相同。",
  why: {
    broadcast: "全部数据都要离开根进程，也都要到达其他每个进程。",
    scatter: "根进程发出除自己那份以外的全部数据。",
    gather: "根进程收到除自己那份以外的全部数据。",
    reduce: "除根以外，每个进程都要以某种和的形式交出自己的全部数据；根进程也要收进同样多的数据。",
    all_gather: "每个进程收到除自己那份以外的全部数据。",
    reduce_scatter: "每个进程交出除自己保留的那份以外的全部数据。",
    all_reduce: "一次 reduce-scatter 加一次 all-gather：两个 (p−1)/p。",
    all_to_all: "每个进程留下给自己的信，发出其余所有的信。",
  },
};

export const BUSBW_WORDS = { en, zh };
