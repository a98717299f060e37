// A queue as a bar: what is being worked on, then what waits, the most urgent first, then what is delayed.
import { count, duration, plural } from './format.js';
import { html } from './lib.js';
import { colour } from './urgency.js';

export const waiting = (queue) => queue.lanes.reduce((sum, lane) => sum + lane.ready + lane.delayed + lane.leased, 0);

// The length grows with the square root, so that a queue of ten stays visible beside one of a million. Within a bar, parts are true to
// their numbers, but for the least width that can be seen.
export function Bar({ queue, most }) {
  const all = waiting(queue);
  const length = most ? Math.max(Math.sqrt(all / most) * 100, all ? 1.5 : 0) : 0;
  const parts = [];
  const part = (kind, lane, at, number) =>
    number && parts.push({ kind, number, name: lane.lane, colour: colour(queue, at), lane });
  queue.lanes.forEach((lane, at) => part('leased', lane, at, lane.leased));
  queue.lanes.forEach((lane, at) => part('ready', lane, at, lane.ready));
  queue.lanes.forEach((lane, at) => part('delayed', lane, at, lane.delayed));
  const say = { leased: 'running', ready: 'waiting', delayed: 'delayed' };
  const words = parts.map((one) => `${count(one.number)} ${one.name} ${say[one.kind]}`).join(', ');
  return html`<div class="bar" role="img" aria-label=${words || 'empty'}>
    <div class="bar-length" style=${{ width: `${length}%` }}>
      ${parts.map(
        (one) => html`<span
          key=${one.kind + one.name}
          class="bar-part ${one.kind}"
          style=${{ flexGrow: one.number, '--lane': one.colour }}
          title=${`${one.name}: ${count(one.number)} ${say[one.kind]}${one.kind === 'ready' && one.lane.oldest_age_ms !== undefined ? `, the oldest for ${duration(one.lane.oldest_age_ms)}` : ''}`}
        ></span>`,
      )}
    </div>
  </div>`;
}

// What each lane has, as words with their colour.
export function LaneChips({ queue }) {
  const busy = queue.lanes
    .map((lane, at) => ({ lane, colour: colour(queue, at) }))
    .filter(({ lane }) => lane.ready || lane.leased || lane.delayed);
  return html`<ul class="chips">
    ${busy.slice(0, 6).map(
      ({ lane, colour: of }) => html`<li key=${lane.lane} title=${`${plural(lane.ready, 'message')} waiting, ${count(lane.leased)} running`}>
        <i class="dot" style=${{ '--lane': of }}></i>${lane.lane}${lane.ready > 0
          ? html`<b>${count(lane.ready)}</b>${lane.oldest_age_ms !== undefined && html`<span class=${lane.oldest_age_ms > 60_000 ? 'age old' : 'age'}>${duration(lane.oldest_age_ms)}</span>`}`
          : html`<span class="age">${lane.leased ? `${count(lane.leased)} running` : `${count(lane.delayed)} delayed`}</span>`}
      </li>`,
    )}
    ${busy.length > 6 && html`<li class="muted">and ${busy.length - 6} more</li>`}
  </ul>`;
}
