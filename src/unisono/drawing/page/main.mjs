// Opens the page: reads the data, replays the schedules, builds the elements.

import { openAlgorithm } from "./algorithm/algorithm.mjs";
import { showError } from "./common/error_page.mjs";
import { watchPrint } from "./common/print.mjs";
import { offerModes } from "./common/reading_modes.mjs";
import { replayed } from "./common/replay.mjs";
import { openAt } from "./common/state.mjs";
import { unpack } from "./common/unpack.mjs";
import { openCompare } from "./compare/compare.mjs";
import { frameCourse } from "./course/frame.mjs";
import { openSimulated } from "./simulated/simulated.mjs";

const root = document.getElementById("page");

try {
  const page = JSON.parse(document.getElementById("data").textContent);
  const opened = async (scene) => (scene.packed ? replayed(scene, await unpack(scene.packed)) : scene);
  const scenes = await Promise.all(page.scenes.map(opened));
  const { simulated, race } = page;
  if (simulated) globalThis.unisono = openSimulated(root, page, scenes[0], await unpack(simulated.packed));
  else if (race) globalThis.unisono = openCompare(root, page, scenes, await unpack(race.packed));
  else
    globalThis.unisono = scenes.length > 1 ? openCompare(root, page, scenes) : openAlgorithm(root, page, scenes[0]);
  openAt(page.settings.opening, globalThis.unisono.state);
  offerModes(root, globalThis.unisono);
  watchPrint(root, scenes[0], page.settings.course, globalThis.unisono);
  frameCourse(root, page, globalThis.unisono);
  document.documentElement.dataset.ready = "true";
} catch (error) {
  showError(root, error);
  throw error;
}
