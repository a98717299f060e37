// The colours of lanes: the same order everywhere, hot is urgent. Colour never says it alone: a name or a number stands beside it.

const STOPS = [
  [0.63, 0.22, 25],
  [0.72, 0.17, 52],
  [0.8, 0.14, 85],
  [0.68, 0.1, 185],
  [0.6, 0.07, 262],
];

// How urgent a lane is among all that its queue could have: 0 most, 1 least. Where lanes are priorities of a scheme, the scheme says it,
// so that a level has its colour whatever else is there; other lanes go by their order. A lane alone has no urgency to show.
function place(queue, at) {
  const { level } = queue.lanes[at];
  const { scheme, order } = queue;
  if (order === 'priority') {
    if (scheme === 'named') return 1 - level / 4;
    if (scheme === 'ten-level') return 1 - level / 9;
    // 0 is level 10, 9 is level 1; without one it is level 0, after all of them.
    if (scheme === 'route') return 1 - level / 10;
    if (scheme === 'signed') return (100 - Math.max(-100, Math.min(100, level))) / 200;
    if (scheme?.startsWith('max-')) return 1 - level / Number(scheme.slice(4));
  }
  return queue.lanes.length <= 1 ? 0.75 : at / (queue.lanes.length - 1);
}

// The colour of the lane at `at` of a queue: `{ scheme, order, lanes: [{ lane, level }] }`.
export function colour(queue, at) {
  const along = Math.max(0, Math.min(1, place(queue, at))) * (STOPS.length - 1);
  const from = STOPS[Math.floor(along)];
  const to = STOPS[Math.min(Math.floor(along) + 1, STOPS.length - 1)];
  const part = along - Math.floor(along);
  // Hues go upwards only, so they meet nowhere.
  const [light, chroma, hue] = from.map((value, index) => value + (to[index] - value) * part);
  return `oklch(${light.toFixed(3)} ${chroma.toFixed(3)} ${hue.toFixed(1)})`;
}

// The colour of each lane of a queue by its name.
export const colours = (queue) => new Map(queue.lanes.map((lane, at) => [lane.lane, colour(queue, at)]));
