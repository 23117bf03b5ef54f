// Columns of numbers, as unisono/drawing/packing.py packs them: differences, compressed, in base64.

const HIGH = ".high"; // suffix of the column with the bits above the lower 30

/** Return the columns by name. */
export async function unpack(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const numbers = new Int32Array(await new Response(stream).arrayBuffer());
  const columns = {};
  let start = 0;
  packed.names.forEach((name, index) => {
    const column = numbers.subarray(start, start + packed.lengths[index]);
    let value = 0;
    for (let at = 0; at < column.length; at++) {
      value += column[at];
      column[at] = value;
    }
    const high = columns[name + HIGH];
    columns[name] = high ? Float64Array.from(column, (low, at) => high[at] * 2 ** 30 + low) : column;
    start += column.length;
  });
  return columns;
}
