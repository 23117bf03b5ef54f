// The load of links over time: the part of its bandwidth that is in use, from 0 to 1.

/** Return the table of loads; the columns have an entry for each change of a link, sorted by link, then by time. */
export function linkLoads({ links, parts, load_parts: loadParts, has_use: known, prediction }, columns) {
  const unit = prediction.time_s / parts;
  const changes = links.map(() => ({ times: [], loads: [] }));
  if (known) {
    columns.use_link.forEach((link, at) => {
      changes[link].times.push(columns.use_time[at] * unit);
      changes[link].loads.push(columns.use_load[at] / loadParts);
    });
  }

  /** The load of a link at a moment. */
  const at = (link, moment) => {
    const { times, loads } = changes[link];
    let low = 0;
    let high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= moment) low = middle + 1;
      else high = middle;
    }
    return low ? loads[low - 1] : 0;
  };

  /** The load of the busiest link of a route. */
  const ofRoute = (route, moment) => route.reduce((most, link) => Math.max(most, at(link, moment)), 0);

  /** The part of a duration for which a link is in use, weighted by its load. */
  const average = (link) => {
    const { times, loads } = changes[link];
    let sum = 0;
    for (let index = 1; index < times.length; index++) sum += loads[index - 1] * (times[index] - times[index - 1]);
    return prediction.time_s ? sum / prediction.time_s : 0;
  };

  /** The intervals in which a link is in use: [{ from, to, load }]. */
  const intervals = (link) => {
    const { times, loads } = changes[link];
    return loads
      .map((load, index) => ({ from: times[index], to: times[index + 1] ?? prediction.time_s, load }))
      .filter(({ load }) => load > 0);
  };

  return { at, ofRoute, average, intervals };
}
