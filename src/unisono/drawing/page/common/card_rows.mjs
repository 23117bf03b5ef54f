// Rows of cards that are all full: the cards of a grid are spread over its rows as evenly as possible, and share the
// width of their row, so that no card stands alone beside an empty space.

/** The number of cards in each row, with at most `most` in a row; the longer rows come first. */
export function rowSizes(count, most) {
  const rows = Math.ceil(count / most);
  return Array.from({ length: rows }, (_, row) => Math.floor(count / rows) + (row < count % rows ? 1 : 0));
}

/** Keep the children of a grid in full rows; a card is at least as wide as `least` pixels if there is room. */
export function fillRows(grid, least) {
  const arrange = () => {
    const gap = Number.parseFloat(getComputedStyle(grid).columnGap) || 0;
    const most = Math.max(1, Math.floor((grid.clientWidth + gap) / (least + gap)));
    const sizes = rowSizes(grid.children.length, most);
    const tracks = sizes.length ? leastCommonMultiple(sizes[0], sizes[sizes.length - 1]) : 1;
    grid.style.gridTemplateColumns = `repeat(${tracks}, minmax(0, 1fr))`;
    const spans = sizes.flatMap((size) => new Array(size).fill(tracks / size));
    [...grid.children].forEach((card, at) => {
      card.style.gridColumn = `span ${spans[at]}`;
    });
  };
  arrange();
  new ResizeObserver(arrange).observe(grid);
}

/** Of two numbers that differ by at most one. */
function leastCommonMultiple(one, other) {
  return one === other ? one : one * other;
}
