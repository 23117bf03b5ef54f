// What the theme leaves to the mouse also works with the keyboard.

const WORDS = {
  en: { __drawer: "Navigation", __search: "Search" },
  zh: { __drawer: "导航", __search: "搜索" },
};

/** The labels in the header that open the navigation and the search of a narrow window become buttons. */
function makeButtons() {
  const words = WORDS[document.documentElement.lang.slice(0, 2)] ?? WORDS.en;
  for (const label of document.querySelectorAll("label.md-header__button:is([for=__drawer], [for=__search])")) {
    const toggle = document.getElementById(label.htmlFor);
    const tell = () => label.setAttribute("aria-expanded", toggle.checked);
    label.tabIndex = 0;
    label.setAttribute("role", "button");
    label.setAttribute("aria-label", words[label.htmlFor]);
    toggle.addEventListener("change", tell);
    tell();
    label.addEventListener("keydown", (event) => {
      if (event.key !== " ") return; // the theme reacts to Enter
      event.preventDefault();
      label.click();
    });
  }
}

/** In a narrow window, the closed search is outside of the window: Tab does not reach it, and the button opens it. */
function skipClosedSearch() {
  const narrow = matchMedia("(max-width: 59.9844em)");
  const toggle = document.getElementById("__search");
  const skip = () => {
    document.querySelector(".md-search__input").tabIndex = narrow.matches && !toggle.checked ? -1 : 0;
  };
  toggle.addEventListener("change", skip);
  narrow.addEventListener("change", skip);
  skip();
}

/** Escape closes the navigation of a narrow window. */
function closeWithEscape() {
  const toggle = document.getElementById("__drawer");
  addEventListener("keydown", ({ key }) => {
    if (key === "Escape" && toggle.checked) toggle.click();
  });
}

/** Long names in the table of contents break after a dot or an underscore. */
function breakNames() {
  for (const title of document.querySelectorAll(".md-nav--secondary .md-ellipsis")) {
    const parts = title.textContent.trim().split(/(?<=[._])/);
    if (parts.length > 1) title.replaceChildren(...parts.flatMap((part) => [document.createElement("wbr"), part]));
  }
}

/** A box that scrolls sideways can have the focus, so that the arrow keys scroll it. */
function makeBoxesScroll() {
  const watch = new ResizeObserver((changes) => {
    for (const { target } of changes) {
      if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
      else target.removeAttribute("tabindex");
    }
  });
  for (const box of document.querySelectorAll("pre > code, .md-typeset__scrollwrap")) watch.observe(box);
}

document$.subscribe(() => {
  makeButtons();
  skipClosedSearch();
  closeWithEscape();
  breakNames();
  makeBoxesScroll();
  document.documentElement.dataset.ready = "true";
});
