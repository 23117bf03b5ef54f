// Opens the page: reads the data, replays the schedules, builds the elements.

import { openAlgorithm } from "./algorithm/algorithm.mjs";
import { showError } from "./common/error_page.mjs";
import { replayed } from "./common/replay.mjs";
import { unpack } from "./common/unpack.mjs";
import { openCompare } from "./compare/compare.mjs";

const root = document.getElementById("page");

try {
  const page = JSON.parse(document.getElementById("data").textContent);
  const scenes = await Promise.all(page.scenes.map(async (scene) => replayed(scene, await unpack(scene.packed))));
  globalThis.unisono = scenes.length > 1 ? openCompare(root, page, scenes) : openAlgorithm(root, page, scenes[0]);
  document.documentElement.dataset.ready = "true";
} catch (error) {
  showError(root, error);
  throw error;
}
