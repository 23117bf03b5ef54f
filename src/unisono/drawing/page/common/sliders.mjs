// Sliders for numbers: on a logarithmic scale, or over a list of values.

import { element } from "./dom.mjs";

const NOTCHES = 1000; // of a logarithmic slider

/** Return { rows, show }: a row for each of `specs`, { name, low, high, unit, text, whole } or { name, values, text }.
 * `unit` is the unit of the value in the state; `whole` keeps it an integer. `show` updates the sliders from the state.
 * */
export function sliderRows(state, specs, labels) {
  const made = specs.map((spec) => {
    const { name } = spec;
    const input = element("input", {
      type: "range",
      id: `slider-${name}`,
      min: 0,
      max: spec.values ? spec.values.length - 1 : NOTCHES,
      oninput: () => state.set({ [name]: valueAt(spec, Number(input.value)) }),
    });
    const output = element("output", { for: `slider-${name}` });
    const row = element("label", { class: "slider" }, element("span", {}, labels[name]), input, output);
    return { spec, input, output, row };
  });
  const show = () => {
    for (const { spec, input, output } of made) {
      const value = state.get(spec.name);
      const notch = notchOf(spec, value);
      const text = spec.text(value * (spec.unit ?? 1));
      if (Number(input.value) !== notch) input.value = notch;
      input.style.setProperty("--part", `${(100 * notch) / Number(input.max)}%`);
      output.textContent = text;
      input.setAttribute("aria-valuetext", text);
    }
  };
  show();
  return { rows: made.map(({ row }) => row), show };
}

/** The value of a slider at a notch. */
export function valueAt({ values, low, high, unit = 1, whole = false }, notch) {
  if (values) return values[notch];
  const value = low * (high / low) ** (notch / NOTCHES);
  return whole ? Math.round(value) : Number((value / unit).toPrecision(3));
}

/** The notch nearest to a value. */
export function notchOf({ values, low, high, unit = 1 }, value) {
  if (values) return values.indexOf(value);
  return Math.round((NOTCHES * Math.log((value * unit) / low)) / Math.log(high / low));
}
