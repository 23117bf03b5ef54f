// Small helpers for elements.

/** Create an element: properties that begin with "on" are listeners, the others attributes; then its children. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

/** Like element, for SVG. */
export function shape(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/** Replace the children of an element. */
export function fill(parent, ...children) {
  parent.replaceChildren(...children);
}

/** Return the pieces of a sentence as children of an element: text between backticks becomes code. */
export function withCode(text) {
  return text.split("`").map((piece, at) => (at % 2 ? element("code", {}, piece) : piece));
}
