// Opens a page: reads the data, replays the schedules, builds the elements. Each kind of page has an entry, which brings
// only the modules of that kind.

import { frameCourse } from "../course/frame.mjs";
import { showError } from "./error_page.mjs";
import { offerExports, writeOut } from "./export.mjs";
import { watchPrint } from "./print.mjs";
import { offerModes } from "./reading_modes.mjs";
import { replayed } from "./replay.mjs";
import { openAt } from "./state.mjs";
import { unpack } from "./unpack.mjs";

/** Build the page: `build` takes its root, its data, the scenes and the unpacked times, and returns what tests inspect. */
export async function openPage(build) {
  const root = document.getElementById("page");
  try {
    const page = JSON.parse(document.getElementById("data").textContent);
    const scene = async (data) => (data.packed ? replayed(data, await unpack(data.packed)) : data);
    const scenes = await Promise.all(page.scenes.map(scene));
    const times = page.simulated ?? page.race;
    const opened = build(root, page, scenes, times ? await unpack(times.packed) : undefined);
    globalThis.unisono = opened;
    openAt(page.settings.opening, opened.state);
    offerModes(root, opened);
    watchPrint(root, scenes, page.settings.course, opened);
    frameCourse(root, page, opened);
    offerExports(root, opened);
    const wanted = document.documentElement.dataset.export;
    if (wanted) await writeOut(wanted, opened);
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    showError(root, error);
    throw error;
  }
}
