// The words about a race, in English and Chinese.

const en = {
  and: (names) => [names.slice(0, -1).join(", "), names[names.length - 1]].filter(Boolean).join(" and "),
  startTime: "All algorithms start at the same time with the same data.",
  startStep: "By step, all algorithms advance together. Steps do not all take the same time.",
  leads: (names, share) =>
    names.length > 1
      ? `${en.and(names)} lead: ${share} of their data has been delivered.`
      : `${names[0]} leads: ${share} of its data has been delivered.`,
  others: (parts) =>
    `${parts.map(([name, share], at) => `${name}${at ? "" : " has delivered"} ${share}`).join(", ")}.`,
  finished: (names, time) => `${en.and(names)} finished first${names.length > 1 ? ", together" : ""}, after ${time}.`,
  slower: (parts) =>
    `${parts.map(([name, ratio], at) => `${name}${at ? "" : " took"} ${ratio} times ${at ? "" : "as long"}`.trim()).join(", ")}.`,
  stepsDone: (parts) =>
    `${parts.map(([name, steps]) => `${name} has finished (${steps} step${steps === 1 ? "" : "s"})`).join(", ")}.`,
  stepsLeft: (parts) =>
    `${parts.map(([name, left], at) => `${name}${at ? "" : " has"} ${left}${at ? "" : ` step${left === 1 ? "" : "s"} left`}`).join(", ")}.`,
  fewest: (names, steps) =>
    `${en.and(names)} ${names.length > 1 ? "need" : "needs"} the fewest steps, ${steps}. Fewer steps do not always mean less time.`,
  steps: (parts) => `${parts.map(([name, steps], at) => `${name}${at ? "" : " needs"} ${steps}`).join(", ")}.`,
  transit: (count) =>
    count ? `${count} message${count === 1 ? " is" : "s are"} in transit.` : "No message is in transit.",
  outside: "numbers around a circle: ranks",
  joint: " ",
};

const zh = {
  and: (names) => [names.slice(0, -1).join("、"), names[names.length - 1]].filter(Boolean).join(" 和 "),
  startTime: "所有算法从相同的数据同时开始。",
  startStep: "按步推进时，所有算法同步前进；各步所用的时间并不相同。",
  leads: (names, share) =>
    names.length > 1 ? `${zh.and(names)} 并列领先：数据已送达 ${share}。` : `${names[0]} 领先：数据已送达 ${share}。`,
  others: (parts) => `${parts.map(([name, share]) => `${name} 已送达 ${share}`).join("，")}。`,
  finished: (names, time) => `${zh.and(names)} ${names.length > 1 ? "同时" : ""}最先完成，用时 ${time}。`,
  slower: (parts) => `${parts.map(([name, ratio]) => `${name} 用时是它的 ${ratio} 倍`).join("，")}。`,
  stepsDone: (parts) => `${parts.map(([name, steps]) => `${name} 已完成（${steps} 步）`).join("，")}。`,
  stepsLeft: (parts) => `${parts.map(([name, left]) => `${name} 还剩 ${left} 步`).join("，")}。`,
  fewest: (names, steps) => `${zh.and(names)} 步数最少，共 ${steps} 步。步数少并不总是意味着用时短。`,
  steps: (parts) => `${parts.map(([name, steps]) => `${name} 需要 ${steps} 步`).join("，")}。`,
  transit: (count) => (count ? `${count} 条消息正在传输。` : "没有消息正在传输。"),
  outside: "圆周外的数字：rank",
  joint: "",
};

export const RACE_WORDS = { en, zh };
