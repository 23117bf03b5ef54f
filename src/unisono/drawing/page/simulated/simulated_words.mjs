// The words of the page in simulated time, in English and Chinese, in addition to common/words.mjs.

import { WORDS } from "../common/words.mjs";

const en = {
  keys: "Keys: space plays, ← → previous and next arrival, ↑ ↓ choose a rank, Home and End, + − change the speed.",
  madeBy: "Made by unisono draw; the simulator executes the program that runs.",
  node: (host) => `host ${host}`,
  near: "near link (inside a host)",
  far: "far link (between hosts)",
  time: "Simulated time",
  stageLabel: (label, ranks) =>
    `${label}, ${ranks}, in simulated time; roads between ranks show the load of links. The text describes each moment.`,
  slower: (times) => `${times}× slower.`,
  legendLoad: "load: the part of the bandwidth in use",
  legendNear: "near link",
  legendFar: "far link",
  moment: (text) => `After ${text}`,
  start: "Start",
  quiet: "No message is in transit.",
  transit: (near, far, segments) => {
    const parts = [];
    if (near) parts.push(`${near} near`);
    if (far) parts.push(`${far} far`);
    const what = `${segments ? "segment" : "message"}${near + far === 1 ? "" : "s"}`;
    return `${near + far} ${what} in transit: ${parts.join(", ")}.`;
  },
  handled: (rank, src, adds) =>
    `Rank ${rank} has received a message from rank ${src} and ${adds ? "adds" : "stores"} it.`,
  segmentOf: (text, segment, segments) => `${text} (Segment ${segment} of ${segments}.)`,
  busiest: (name, percent) => `Busiest link: ${name}, ${percent} %.`,
  over: (time) => `Finished after ${time}.`,
  linksTitle: "Load of the links over time",
  linksNote: (shown, hidden) =>
    `Each strip is a link. ${hidden ? `These are the ${shown} busiest; ${hidden} more are in use. ` : ""}Click to go to a moment.`,
  noUse: "There are too many messages to show the load of each link.",
  predicted: "Prediction",
  predictedFor: (network, bytes) => (bytes ? `for ${bytes} on ${network}` : `on ${network}`),
  pathParts: "Parts of the critical path:",
  parts: {
    latency_s: "latency",
    bandwidth_s: "bandwidth",
    overhead_s: "overhead",
    copy_s: "copies",
    reduce_s: "reduction",
    waiting_s: "waiting",
  },
  latencyBound: "latency bound",
  bandwidthBound: "bandwidth bound",
  ofBound: (time, ratio) => `${time}; this takes ${ratio}×`,
  inSegments: (messages, segments) => (segments > 1 ? `${messages}, in ${segments} segments` : messages),
  sharing: "shared links",
  shared: "messages share their bandwidth",
  notShared: "messages do not meet, or take turns at ports",
  source: (title, source) => `Network: ${title}.${source ? ` Source: ${source}.` : ""}`,
};

const zh = {
  keys: "快捷键：空格播放或暂停，← → 上一次、下一次消息到达，↑ ↓ 选择 rank，Home、End 跳到首尾，+ − 调整速度。",
  madeBy: "由 unisono draw 生成；模拟器执行的就是实际运行的程序。",
  node: (host) => `主机 ${host}`,
  near: "近链路（主机内）",
  far: "远链路（主机之间）",
  time: "模拟时间",
  stageLabel: (label, ranks) =>
    `${label}，${ranks}，按模拟时间播放；rank 之间的道路表示链路的负载。文字说明每个时刻。`,
  slower: (times) => `放慢 ${times} 倍播放。`,
  legendLoad: "负载：正在使用的带宽比例",
  legendNear: "近链路",
  legendFar: "远链路",
  moment: (text) => `经过 ${text}`,
  start: "开始",
  quiet: "没有消息在途中。",
  transit: (near, far, segments) => {
    const parts = [];
    if (near) parts.push(`近 ${near}`);
    if (far) parts.push(`远 ${far}`);
    return `${near + far} ${segments ? "个分段" : "条消息"}在途中（${parts.join("，")}）。`;
  },
  handled: (rank, src, adds) => `rank ${rank} 收到了 rank ${src} 的消息，正在${adds ? "累加" : "存入"}。`,
  segmentOf: (text, segment, segments) => `${text}（第 ${segment} 段，共 ${segments} 段）`,
  busiest: (name, percent) => `最忙的链路：${name}，${percent} %。`,
  over: (time) => `${time} 后完成。`,
  linksTitle: "各链路的负载随时间的变化",
  linksNote: (shown, hidden) =>
    `每一条表示一条链路。${hidden ? `这里是最忙的 ${shown} 条，另有 ${hidden} 条在使用。` : ""}点击可跳到对应时刻。`,
  noUse: "消息太多，无法显示每条链路的负载。",
  predicted: "预测",
  predictedFor: (network, bytes) => (bytes ? `${bytes}，网络 ${network}` : `网络 ${network}`),
  pathParts: "关键路径的组成：",
  parts: {
    latency_s: "延迟",
    bandwidth_s: "带宽",
    overhead_s: "开销",
    copy_s: "复制",
    reduce_s: "归约",
    waiting_s: "等待",
  },
  latencyBound: "延迟下界",
  bandwidthBound: "带宽下界",
  ofBound: (time, ratio) => `${time}；本算法为其 ${ratio} 倍`,
  inSegments: (messages, segments) => (segments > 1 ? `${messages}，分 ${segments} 段` : messages),
  sharing: "链路共享",
  shared: "消息分享链路带宽",
  notShared: "消息互不相遇，或在端口依次排队",
  source: (title, source) => `网络：${title}。${source ? `来源：${source}。` : ""}`,
};

export const SIMULATED_WORDS = { en: { ...WORDS.en, ...en }, zh: { ...WORDS.zh, ...zh } };
