// What the views of routes have in common.
import { duration } from './format.js';
import { html } from './lib.js';
import { colour } from './urgency.js';

// Rows that are drawn; a manifest may have 10,000 routes.
export const DRAWN_MAX = 200;

// A level of routes with its colour: 0 is the most urgent; without one, after all that have one.
export function Level({ of }) {
  const lane = { scheme: 'route', order: 'priority', lanes: [{ level: of === undefined ? 0 : 10 - of }] };
  return html`<span class="level"><i class="dot" style=${{ '--lane': colour(lane, 0) }}></i>${of ?? html`<span class="muted">none</span>`}</span>`;
}

// How long copies live; the longest there is means for ever.
export const Lives = ({ secs }) => (secs === undefined ? html`<span class="muted">as its queue says</span>` : secs === 4_294_967_295 ? 'for ever' : duration(secs * 1_000));

// What stands between backticks is code.
export const ticked = (text) => text.split('`').map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));

// What does not hold in a manifest, with the places: carets stand under them, so no line is broken.
export const ManifestProblem = ({ problem }) => html`<div class="problem" role="alert">
  <p><b>${problem.title}</b></p>
  <pre class="as-is" tabindex="0" aria-label="What does not hold">${problem.message}</pre>
  <p>Correct what stands there; nothing was changed.</p>
</div>`;
