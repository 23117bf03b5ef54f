// The contents of a page that could not be drawn.

import { element } from "./dom.mjs";

/** Show the error, in both languages. */
export function showError(root, error) {
  const said =
    "This page could not be drawn. It needs a browser of 2023 or newer. 页面无法显示，请使用 2023 年或更新的浏览器。";
  root.append(element("p", { class: "why" }, said, " ", element("code", {}, `${error}`)));
}
