// Light or dark: what the reader asks for, or else the system. The style sheet looks at data-theme of the document.

const DARK = "(prefers-color-scheme: dark)";

/** Keep the document's theme as asked for; `changed` is called whenever it is another one. */
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

/** What the reader asked for: auto, light or dark. */
export function themeWish() {
  return document.documentElement.dataset.wish ?? "auto";
}

/** Ask for another theme. */
export function wishForTheme(name) {
  const root = document.documentElement;
  root.dataset.wish = name;
  root.dispatchEvent(new Event("themewish"));
}
