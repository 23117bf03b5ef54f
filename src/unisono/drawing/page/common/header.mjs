// The header of the page: its subject, and the switches for language and theme.

import { element, fill } from "./dom.mjs";
import { select } from "./playback_bar.mjs";
import { chooseTheme, chosenTheme } from "./theme.mjs";
import { LANGUAGES } from "./words.mjs";

/** Return the header: { node, update }; `about(language)` gives title, chips, story and idea. */
export function header(page, state, words, about) {
  const node = element("header", { class: "top" });
  const update = () => {
    const w = words();
    const language = state.get("lang");
    const { title, chips, story, idea } = about(language);
    document.title = `${title} · Unisono`;
    document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
    fill(
      node,
      element(
        "nav",
        { class: "bar-top" },
        page.home
          ? element("a", { class: "brand", href: page.home }, "Unisono", element("span", {}, ` ‹ ${w.allPages}`))
          : element("span", { class: "brand" }, "Unisono"),
        element("div", { class: "switches" }, ...languageButtons(state, w), themeChoice(w)),
      ),
      element("h1", {}, title, ...chips.map((chip) => element("span", { class: "chip" }, chip))),
      element("p", { class: "tale" }, story),
      idea ? element("p", { class: "idea" }, idea) : "",
    );
  };
  update();
  return { node, update };
}

function languageButtons(state, w) {
  const group = element("div", { class: "languages", role: "group", "aria-label": w.language });
  for (const [language, name] of Object.entries(LANGUAGES)) {
    group.append(
      element(
        "button",
        {
          type: "button",
          lang: language,
          "data-language": language,
          "aria-pressed": `${state.get("lang") === language}`,
          onclick: () => state.set({ lang: language }),
        },
        name,
      ),
    );
  }
  return [group];
}

function themeChoice(w) {
  return select("theme", w.theme, chosenTheme(), Object.keys(w.themes), (name) => w.themes[name], chooseTheme);
}

/** The footer of the page: its keys, as names of words; a link to this view; the program that made it. */
export function footer(state, words, keys = ["keys"]) {
  const node = element("footer", { class: "foot" });
  const update = () => {
    const w = words();
    const copy = element("button", { type: "button", class: "text", id: "copy-link" }, w.copyLink);
    copy.addEventListener("click", async () => {
      const link = location.href.replace(/#.*$/, "") + state.link();
      try {
        await navigator.clipboard.writeText(link);
        copy.textContent = w.copied;
      } catch {
        location.hash = state.link(); // without a clipboard, the link is in the address bar
      }
    });
    const about = keys.map((name) => w[name]).join(" ");
    fill(node, element("p", { class: "keys" }, about), element("p", {}, copy), element("p", {}, w.madeBy));
  };
  update();
  return { node, update };
}
