// Opens the page: reads the data, replays the schedules, builds what is to be seen.

import { openAlgorithm } from "./algorithm.mjs";
import { openCompare } from "./compare.mjs";
import { complain } from "./complaint.mjs";
import { replayed } from "./replay.mjs";
import { unpack } from "./unpack.mjs";

const root = document.getElementById("page");

try {
  const page = JSON.parse(document.getElementById("data").textContent);
  const scenes = await Promise.all(page.scenes.map(async (scene) => replayed(scene, await unpack(scene.packed))));
  globalThis.unisono = scenes.length > 1 ? openCompare(root, page, scenes) : openAlgorithm(root, page, scenes[0]);
  document.documentElement.dataset.ready = "true";
} catch (error) {
  complain(root, error);
  throw error;
}
