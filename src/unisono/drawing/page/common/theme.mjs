// The theme, light or dark: the choice of the reader, or else that of the system. The style sheet uses data-theme of
// the document.

const DARK = "(prefers-color-scheme: dark)";

/** Keep the theme of the document up to date; `changed` is called whenever it changes. */
export function followTheme(changed) {
  const root = document.documentElement;
  const system = matchMedia(DARK);
  const apply = () => {
    const wish = root.dataset.wish ?? "auto";
    root.dataset.theme = wish === "auto" ? (system.matches ? "dark" : "light") : wish;
    changed();
  };
  system.addEventListener("change", apply);
  root.addEventListener("themewish", apply);
  apply();
}

/** The choice of the reader: auto, light or dark. */
export function chosenTheme() {
  return document.documentElement.dataset.wish ?? "auto";
}

/** Choose another theme. */
export function chooseTheme(name) {
  const root = document.documentElement;
  root.dataset.wish = name;
  root.dispatchEvent(new Event("themewish"));
}
