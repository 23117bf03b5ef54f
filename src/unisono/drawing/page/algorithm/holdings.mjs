// What every slot holds after a step, for any number of ranks: where data are summed, the number of ranks in the sum, and
// elsewhere the rank that the data come from. Replays the columns of messages; unlike replay.mjs it keeps no expressions.

const SNAPSHOTS = 12; // states that are kept, so that going back replays only a part

export class Holdings {
  constructor(scene) {
    const { columns, size, slots, levels, collective } = scene;
    Object.assign(this, { scene, counts: collective.reduces, knows: !collective.carries_data });
    this.messageStarts = starts(columns.message_amount);
    this.localStarts = starts(columns.local_amount);
    this.sent = byLevel(columns.message_sent, levels);
    this.got = byLevel(columns.message_got, levels);
    this.locals = byLevel(columns.local_level, levels);
    const empty = (length) => (this.knows ? new Array(length).fill(0n) : new Uint16Array(length));
    this.carried = empty(this.messageStarts.at(-1)); // the contents of the chunks of all messages
    this.cells = empty(size * slots);
    let at = 0;
    columns.input_count.forEach((count, rank) => {
      for (let index = 0; index < count; index++, at++) {
        const value = this.knows ? 1n << BigInt(rank) : this.counts ? 1 : rank + 1;
        this.cells[rank * slots + columns.input_slot[at]] = value;
      }
    });
    this.level = 0;
    this.apart = Math.max(1, Math.ceil(levels / SNAPSHOTS));
    this.snapshots = [this.cells.slice()];
  }

  /** The contents of all slots after a level, rank by rank: numbers, 0 for an empty slot. */
  at(level) {
    const nearest = Math.min(this.snapshots.length - 1, Math.floor(level / this.apart));
    if (level < this.level || nearest * this.apart > this.level) {
      this.level = nearest * this.apart;
      this.cells = this.snapshots[nearest].slice();
    }
    while (this.level < level) this.advance();
    return this.knows ? this.cells.map(sizeOf) : this.cells;
  }

  /** The slots that the messages and local ops of a level write, as numbers of cells. */
  written(level) {
    const { columns, slots } = this.scene;
    const found = [];
    const add = (rank, chunks, list, id) => {
      for (let at = list[id]; at < list[id + 1]; at++) found.push(rank * slots + chunks[at]);
    };
    for (const id of this.got[level] ?? []) {
      add(columns.message_dst[id], columns.message_got_chunks, this.messageStarts, id);
    }
    for (const id of this.locals[level] ?? []) {
      add(columns.local_rank[id], columns.local_got_chunks, this.localStarts, id);
    }
    return found;
  }

  /** Replay one level: what is sent is read before anything is written. */
  advance() {
    const { columns, slots } = this.scene;
    const { cells, carried, messageStarts, localStarts } = this;
    this.level += 1;
    for (const id of this.sent[this.level]) {
      const first = columns.message_src[id] * slots;
      for (let at = messageStarts[id]; at < messageStarts[id + 1]; at++) {
        carried[at] = cells[first + columns.message_sent_chunks[at]];
      }
    }
    const moved = this.locals[this.level].flatMap((id) => {
      const first = columns.local_rank[id] * slots;
      const read = [];
      for (let at = localStarts[id]; at < localStarts[id + 1]; at++) {
        const value = cells[first + columns.local_sent_chunks[at]];
        read.push([first + columns.local_got_chunks[at], value, columns.local_reduce[id]]);
      }
      return read;
    });
    for (const [cell, value, reduce] of moved) this.put(cell, value, reduce);
    for (const id of this.got[this.level]) {
      const first = columns.message_dst[id] * slots;
      for (let at = messageStarts[id]; at < messageStarts[id + 1]; at++) {
        this.put(first + columns.message_got_chunks[at], carried[at], columns.message_reduce[id]);
      }
    }
    if (this.level === this.snapshots.length * this.apart) this.snapshots.push(cells.slice());
  }

  put(cell, value, reduce) {
    if (this.knows) this.cells[cell] |= value;
    else if (reduce && this.counts) this.cells[cell] += value;
    else this.cells[cell] = value;
  }
}

/** Where the chunks of each message begin in their column, and where the last ones end. */
function starts(amounts) {
  const made = new Uint32Array(amounts.length + 1);
  amounts.forEach((amount, id) => {
    made[id + 1] = made[id] + amount;
  });
  return made;
}

/** The numbers of the events on each level; an event that did not happen is on none. */
function byLevel(column, levels) {
  const found = Array.from({ length: levels + 1 }, () => []);
  column.forEach((level, id) => {
    if (level >= 0 && level <= levels) found[level].push(id);
  });
  return found;
}

function sizeOf(set) {
  let count = 0;
  for (let rest = set; rest > 0n; rest >>= 32n) {
    for (let bits = Number(rest & 0xffffffffn); bits; bits = (bits & (bits - 1)) >>> 0) count += 1;
  }
  return count;
}
