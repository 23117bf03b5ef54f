// The keys of a page.

import { nextSpeed } from "./state.mjs";

/** Handle the keyboard, and links that are opened in this window. `ranks` and `length` return the current number of
 * ranks and positions; `own` are the additional keys of this page. */
export function watchKeys(state, player, ranks, length, own = {}) {
  addEventListener("hashchange", () => state.follow(location.hash));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = meaning(event, state, player, ranks, length, own);
    if (!action) return;
    event.preventDefault();
    action();
  });
}

function meaning(event, state, player, ranks, length, own) {
  const { target, key } = event;
  const position = target.id === "position"; // the position slider: its keys act like those of the page
  if (target instanceof HTMLSelectElement || (target instanceof HTMLInputElement && !position)) return null;
  const presses = target instanceof HTMLButtonElement || target.tagName === "SUMMARY";
  if (presses && (key === " " || key === "Enter")) return null;
  const rank = state.get("rank");
  const last = ranks() - 1;
  const actions = {
    " ": () => player.toggle(),
    ArrowRight: () => player.forward(),
    ArrowLeft: () => player.back(),
    ArrowDown: () => state.set({ rank: rank === null || rank >= last ? 0 : rank + 1 }),
    ArrowUp: () => state.set({ rank: rank === null || rank <= 0 ? last : rank - 1 }),
    Escape: () => state.set({ rank: null }),
    Home: () => player.go(0, false),
    End: () => player.go(length(), false),
    n: () => state.set({ numbers: !state.get("numbers") }),
    "+": () => state.set({ speed: nextSpeed(state.get("speed"), 1) }),
    "-": () => state.set({ speed: nextSpeed(state.get("speed"), -1) }),
    ...own,
  };
  return (event.shiftKey && actions[`Shift+${key}`]) || (actions[key] ?? null);
}
