// Opens the page: reads the data, replays the schedules, builds what is to be seen.

import { openAlgorithm } from "./algorithm.mjs";
import { openCompare } from "./compare.mjs";
import { element } from "./dom.mjs";
import { replayed } from "./replay.mjs";
import { unpack } from "./unpack.mjs";

const root = document.getElementById("page");

try {
  const page = JSON.parse(document.getElementById("data").textContent);
  const scenes = await Promise.all(page.scenes.map(async (scene) => replayed(scene, await unpack(scene.packed))));
  globalThis.unisono = scenes.length > 1 ? openCompare(root, page, scenes) : openAlgorithm(root, page, scenes[0]);
  document.documentElement.dataset.ready = "true";
} catch (error) {
  const said =
    "This page could not be drawn. It needs a browser of 2023 or newer. 页面无法显示，请使用 2023 年或更新的浏览器。";
  root.append(element("p", { class: "why" }, said, " ", element("code", {}, `${error}`)));
  throw error;
}
