// Switches the language of the page, and follows the theme of the system.
const root = document.documentElement;
const buttons = [...document.querySelectorAll("[data-language]")];
const show = (language) => {
  root.lang = language;
  for (const button of buttons) button.setAttribute("aria-pressed", `${button.dataset.language === language}`);
};
for (const button of buttons) button.addEventListener("click", () => show(button.dataset.language));
const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => (root.dataset.theme = dark.matches ? "dark" : "light");
dark.addEventListener("change", follow);
follow();
show(root.lang);
root.dataset.ready = "true";
