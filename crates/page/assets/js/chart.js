// Numbers over time, drawn by uPlot.
import { duration } from './format.js';
import { html, useEffect, useRef, useState } from './lib.js';
import { useWidth } from './use.js';
import uPlot from '../vendor/uPlot.mjs';

// Steps of axes: numbers without parts, and times as people count them.
export const WHOLE = Array.from({ length: 9 }, (_, power) => [1, 2, 5].map((one) => one * 10 ** power)).flat();
export const TIMES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 3e4, 6e4, 12e4, 3e5, 6e5, 12e5, 18e5, 36e5, 72e5, 144e5, 216e5, 432e5, 864e5];
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
// A colour of the page by its name, as a canvas takes it: light or dark is decided by then.
export function style(name) {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

// Lines over the same times. `series`: `{ label, values, colour, fill }`; `show` says a number as text; `stacked` puts each on those
// before it; `steps` are those of its axis. A summary in words is there for who does not see it.
export function Chart({ title, times, series, show, stacked, steps, height = 160 }) {
  const [hovered, hover] = useState(null);
  const [ref, width] = useWidth();
  const place = useRef(null);
  const plot = useRef(null);
  const dark = matchMedia('(prefers-color-scheme: dark)').matches;
  const theme = document.documentElement.dataset.theme ?? (dark ? 'dark' : 'light');
  const key = series.map((one) => one.label + one.colour).join() + stacked + theme;
  const data = [times, ...(stacked ? stack(series) : series.map((one) => one.values))];

  useEffect(() => {
    if (!width) return undefined;
    const axis = { stroke: style('--muted'), grid: { stroke: style('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui' };
    const line = (one) => ({
      label: one.label,
      stroke: one.colour,
      width: stacked ? 1 : 1.75,
      fill: stacked ? one.colour : undefined,
      points: { show: false },
    });
    const drawn = new uPlot(
      {
        width,
        height,
        padding: [8, 4, 0, 0],
        cursor: { y: false, points: { size: 6 } },
        legend: { show: false },
        hooks: { setCursor: [(of) => hover(of.cursor.idx ?? null)] },
        scales: { x: { time: true }, y: { range: (_, __, most) => [0, most > 0 ? most * 1.08 : 1] } },
        axes: [
          { ...axis, space: 70, values: [[60, '{HH}:{mm}', null, null, null, null, null, null, 1], [10, '{HH}:{mm}:{ss}', null, null, null, null, null, null, 1]] },
          { ...axis, size: 62, values: (_, ticks) => ticks.map(show), ...(steps ? { incrs: steps } : {}) },
        ],
        // What lies on top of all is drawn first, so that nothing hides it.
        series: [{}, ...series.map(line)],
        bands: stacked ? series.slice(1).map((_, at) => ({ series: [at + 2, at + 1] })) : [],
      },
      data,
      place.current,
    );
    plot.current = drawn;
    return () => {
      plot.current = null;
      drawn.destroy();
    };
  }, [width > 0, key, height]);

  useEffect(() => {
    if (plot.current && width) plot.current.setSize({ width, height });
  }, [width]);
  useEffect(() => {
    plot.current?.setData(data);
  });

  const at = hovered ?? times.length - 1;
  // The last sample is not of now: people would compare it with the numbers above.
  const when = clock.format(new Date((times[at] ?? 0) * 1_000));
  const last = (one) => show(one.values[one.values.length - 1] ?? 0);
  const words = series.map((one) => `${one.label} ${last(one)}`).join(', ');
  return html`<figure class="chart" ref=${ref}>
    <figcaption>${title}</figcaption>
    <div ref=${place} role="img" aria-busy=${!width} style=${{ minHeight: `${height}px` }} aria-label=${`${title} over the last ${duration((times.length || 1) * 10_000)}; at last ${words}`}></div>
    <ul class="legend"><li class="muted">${when}</li>
      ${series.map((one) => html`<li key=${one.label}><i class="dot" style=${{ '--lane': one.colour }}></i>${one.label}<b>${show(one.values[at] ?? 0)}</b></li>`)}</ul>
  </figure>`;
}

function stack(series) {
  const sums = series[0] ? new Array(series[0].values.length).fill(0) : [];
  return series.map((one) => one.values.map((value, at) => (sums[at] += value)));
}

// The times of samples, in seconds, the last at `until`.
export const times = (until, step, length) =>
  Array.from({ length }, (_, at) => (until - (length - 1 - at) * step) / 1_000);

// A small line without axes.
export function Spark({ values, colour = 'currentColor', label }) {
  const most = Math.max(...values, 0);
  const points = values.map((value, at) => {
    const x = values.length > 1 ? (at / (values.length - 1)) * 100 : 100;
    return `${x.toFixed(1)},${(22 - (most ? (value / most) * 20 : 0)).toFixed(1)}`;
  });
  return html`<svg class="spark" viewBox="0 0 100 24" preserveAspectRatio="none" role="img" aria-label=${label}>
    <polyline points=${points.join(' ')} fill="none" stroke=${colour} stroke-width="1.5" vector-effect="non-scaling-stroke" stroke-linejoin="round" />
  </svg>`;
}
