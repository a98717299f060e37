// Small things that every view has.
import { absolute, ago } from './format.js';
import { classes, html } from './lib.js';
import { href } from './route.js';
import { useKept, useNow } from './use.js';

// A time: how long ago, and exactly when it is pointed at. A click turns all of them over.
export function When({ at }) {
  const now = useNow();
  const [exactly, turn] = useKept('exact-times', false);
  if (!at) return html`<span class="muted">–</span>`;
  const both = [ago(at, now), absolute(at)];
  return html`<time datetime=${new Date(at).toISOString()} title=${exactly ? both[0] : both[1]} onDblClick=${() => turn(!exactly)}>${exactly ? both[1] : both[0]}</time>`;
}

// Who works on a message: the worker by the name it gave itself, else its consumer, else the user.
export const holderName = (holder) => holder && (holder.worker ?? [holder.user, holder.address ?? holder.connection].filter(Boolean).join(' at '));

// All that is known of who works on a message.
export const Holder = ({ of }) => html`${holderName(of)}
  ${of.worker && html`<br /><span class="muted">${[of.user, of.address].filter(Boolean).join(' at ')}</span>`}
  ${of.connection && html`<br /><a class="mono" href=${href('clients', of.connection)}>${of.consumer_tag || 'its connection'}</a>`}`;

// What went wrong, and what to do.
export const ProblemBox = ({ problem, retry }) => html`<div class="problem" role="alert">
  <p><b>${problem.message}</b></p>
  ${problem.hint && html`<p>${problem.hint}</p>`}
  ${retry && html`<button onClick=${retry}>Try again</button>`}
</div>`;

// What a view says when there is nothing to show: why, and how there would be something.
export const Empty = ({ title, children }) => html`<div class="empty"><h2>${title}</h2>${children}</div>`;

// One of a few, side by side.
export function Segments({ label, value, options, change }) {
  return html`<div class="segments" role="group" aria-label=${label}>
    ${options.map(
      (option) => html`<button
        type="button"
        class=${classes(option.value === value && 'on')}
        aria-pressed=${option.value === value}
        onClick=${() => change(option.value)}
      >${option.label}${option.count !== undefined && html` <span class="count">${option.count}</span>`}</button>`,
    )}
  </div>`;
}

// Views of one thing; the chosen one stands in the address.
export const Tabs = ({ label, tabs, current }) => html`<nav class="tabs" aria-label=${label}>
  ${tabs.map((tab) => html`<a href=${tab.href} aria-current=${tab.name === current ? 'page' : undefined}>${tab.label}${tab.count ? html` <span class="count">${tab.count}</span>` : ''}</a>`)}
</nav>`;

export const Title = ({ children, actions, sub }) => html`<header class="title">
  <div><h1>${children}</h1>${sub && html`<p class="muted">${sub}</p>`}</div>
  ${actions && html`<div class="actions">${actions}</div>`}
</header>`;

// Facts as pairs: side by side, or each in a row.
export const Facts = ({ of, rows }) => html`<dl class=${classes('facts', rows && 'rows')}>
  ${of.filter(Boolean).map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
</dl>`;

// A table of few rows. Columns: `{ name, label, show, number }`. `stack`: on a phone its cells stand one below the other.
export const Table = ({ label, columns, rows, id, onRow, stack }) => html`<div class="scroll" tabindex="0" role="region" aria-label=${label}><table class=${classes(stack && 'stack')} aria-label=${label}>
  <thead><tr>${columns.map((column) => html`<th scope="col" class=${classes(column.number && 'number')}>${column.label || html`<span class="unseen">What can be done</span>`}</th>`)}</tr></thead>
  <tbody>${rows.map((row) => html`<tr key=${id(row)} class=${classes(onRow && 'link')} onClick=${onRow && (() => onRow(row))}>
    ${columns.map((column) => html`<td class=${classes(column.number && 'number')} data-label=${column.label}>${column.show(row)}</td>`)}
  </tr>`)}</tbody>
</table></div>`;

export const copy = (text) => navigator.clipboard?.writeText(text);
