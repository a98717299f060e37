// Routes: which messages of a virtual host go to which endpoints, what they did so far, and where their copies are.
import { query as queryOf, queuePath } from './api.js';
import { Bar, LaneChips, waiting } from './bar.js';
import { Empty, ProblemBox, Table, Tabs, Title } from './common.js';
import { count, plural } from './format.js';
import { hasTag } from './layout.js';
import { html, useState } from './lib.js';
import { EXAMPLE, useDraft } from './manifest.js';
import { go, href, setQuery } from './route.js';
import { EditRoutes } from './routes-edit.js';
import { DRAWN_MAX, Level, Lives } from './routes-parts.js';
import { TryRoutes } from './routes-try.js';
import { useAnswer } from './use.js';

export function Routes({ who, parts, query }) {
  const vhost = query.vhost ?? '/';
  const vhosts = useAnswer('/v1/vhosts').data?.vhosts ?? [];
  const answer = useAnswer(`/v1/routes${queryOf({ vhost })}`, 2_000);
  const may = hasTag(who, 'policymaker');
  const [draft, setDraft] = useDraft(`${who.name}\n${vhost}`);
  // What is filled in to try stays while one looks at the routes.
  const [trial, setTrial] = useState({ path: '', type: 'application/json', headers: '', body: '', edited: false });
  const elsewhere = queryOf({ vhost: query.vhost });
  const at = (name) => href('routes', ...(name ? [name] : [])) + elsewhere;
  const tabs = [
    { name: '', label: 'Routes' },
    { name: 'try', label: 'Try a message' },
    may && { name: 'edit', label: 'Edit' },
  ].filter(Boolean);
  const tab = tabs.find((one) => one.name === (parts[1] ?? '')) ?? tabs[0];
  const edit = (text) => {
    setDraft({ text, isSet: false });
    go(at('edit'));
  };
  const tryEdited = () => {
    setTrial((before) => ({ ...before, edited: draft !== null }));
    go(at('try'));
  };
  const shown = () => {
    if (!answer.data) return answer.problem ? html`<${ProblemBox} problem=${answer.problem} retry=${answer.reload} />` : html`<p class="muted">Looking …</p>`;
    if (tab.name === 'try') return html`<${TryRoutes} key=${vhost} vhost=${vhost} routes=${answer.data.routes} draft=${may ? (draft?.text ?? null) : null} trial=${trial} setTrial=${setTrial} />`;
    if (tab.name === 'edit') return html`<${EditRoutes} key=${vhost} vhost=${vhost} draft=${draft} setDraft=${setDraft} tryEdited=${tryEdited} done=${answer.reload} />`;
    return html`${answer.problem && html`<${ProblemBox} problem=${answer.problem} retry=${answer.reload} />`}<${Held} key=${vhost} who=${who} vhost=${vhost} data=${answer.data} draft=${draft} edit=${may && edit} />`;
  };
  return html`<main id="main" tabindex="-1">
    <${Title} sub=${html`Which messages go to which endpoints, by their path and what they say. Exchanges and bindings are under <a href=${href('topology') + elsewhere}>Routing</a>.`}
      actions=${vhosts.length > 1 && html`<select aria-label="Virtual host" value=${vhost} onChange=${(event) => setQuery({ vhost: event.target.value })}>${vhosts.map((one) => html`<option value=${one.name}>${one.name}</option>`)}</select>`}>Routes</${Title}>
    <${Tabs} label="Views of routes" current=${tab.name} tabs=${tabs.map((one) => ({ ...one, href: at(one.name) }))} />
    ${shown()}
  </main>`;
}

// What holds, and what came of it.
function Held({ who, vhost, data, draft, edit }) {
  if (data.routes.length === 0) return html`<section class="sheet"><${Nothing} draft=${draft} edit=${edit} unrouted=${data.unrouted} /></section>`;
  const missing = missingOf(who, data);
  return html`<${Figures} data=${data} />
    <${Missing} data=${data} missing=${missing} />
    <${List} vhost=${vhost} data=${data} missing=${new Set(missing.map((endpoint) => endpoint.queue))} />
    <${Endpoints} who=${who} vhost=${vhost} data=${data} />`;
}

const Nothing = ({ draft, edit, unrouted }) => html`<${Empty} title="No routes">
  <p>A program publishes to a path, and routes decide who gets a copy, how urgent it is, and for how long it lives.${unrouted > 0 && ` ${plural(unrouted, 'message')} came that no route matched.`}</p>
  <p>They stand in a manifest, such as this one:</p>
  <pre tabindex="0" aria-label="An example">${EXAMPLE}</pre>
  ${edit ? html`<button class="primary" onClick=${() => edit(draft?.text ?? EXAMPLE)}>${draft === null ? 'Load it into the editor' : 'Back to what you wrote'}</button>` : html`<p>Policymakers set it, here or with <code>overtake routes apply</code>.</p>`}
</${Empty}>`;

function Figures({ data }) {
  const figure = (label, value, say, bad) => html`<div class="figure"><div class="label">${label}</div><div class="value ${bad ? 'bad' : ''}">${count(value)}</div><div class="hint">${say}</div></div>`;
  const copies = data.routes.reduce((sum, route) => sum + route.copies, 0);
  return html`<section class="sheet figures four" aria-label="What came">
    ${figure('Came', data.published, 'since the broker started')}
    ${figure('Unrouted', data.unrouted, 'no route matched', data.unrouted > 0)}
    ${figure('By fallback', data.fallback, 'only fallback routes matched')}
    ${figure('Copies', copies, 'of these routes')}
  </section>`;
}

// Queues that are not there. Who does not see everything cannot tell them from what is not theirs, and is not alarmed.
const missingOf = (who, data) => (hasTag(who, 'monitoring') ? data.endpoints.filter((endpoint) => !endpoint.exists) : []);

function Missing({ data, missing }) {
  if (missing.length === 0) return null;
  return html`<section class="sheet" aria-label="Needs attention"><header><h2>Needs attention</h2></header><ul class="troubles">${missing.slice(0, 8).map((endpoint) => html`<li class="trouble-row" key=${endpoint.queue}>
    <span class="badge s2">at risk</span>
    <p><b>${endpoint.queue}</b>: the queue is not there; copies for it are left out. <span class="muted">Make it again, or change what leads there: ${few(namesInto(data, endpoint))}.</span></p></li>`)}</ul>
    ${missing.length > 8 && html`<p class="below">and ${count(missing.length - 8)} more</p>`}</section>`;
}

const namesInto = (data, endpoint) => data.routes.filter((route) => route.queue === endpoint.queue).map((route) => route.name);

const few = (names) => `${names.slice(0, 3).join(', ')}${names.length > 3 ? ` and ${count(names.length - 3)} more` : ''}`;

function List({ vhost, data, missing }) {
  const [name, setName] = useState('');
  const word = name.trim().toLowerCase();
  const matching = data.routes.filter((route) => `${route.name}\n${route.route}`.toLowerCase().includes(word));
  return html`<section class="sheet" aria-label="Routes"><header><h2>Routes <span class="count">${count(data.routes.length)}</span></h2>
      <div class="filters"><input type="search" aria-label="Filter routes" placeholder="Filter ( / )" value=${name} onInput=${(event) => setName(event.target.value)} /></div></header>
    ${matching.length === 0
      ? html`<${Empty} title="No route matches"><p>None has “${name}” in it. <button class="small" onClick=${() => setName('')}>Show all</button></p></${Empty}>`
      : html`<${Table} stack label="Routes, the most urgent first" rows=${matching.slice(0, DRAWN_MAX)} id=${(row) => row.name} columns=${[
          { label: 'Name', show: (row) => html`<div><b>${row.name}</b>${row.fallback && html` <span class="badge" title="It counts only for messages that no other route matches">fallback</span>`}${missing.has(row.queue) && html` <span class="badge s2">leads nowhere</span>`}</div>` },
          { label: 'Priority', show: (row) => html`<${Level} of=${row.priority} />` },
          { label: 'Route', show: (row) => html`<code class="route">${row.route}</code>` },
          { label: 'Lives', show: (row) => html`<span class="nowrap"><${Lives} secs=${row.ttl_secs} /></span>` },
          { label: 'Matched', number: true, show: (row) => count(row.matched) },
          { label: 'Undefined', number: true, show: (row) => (row.undefined ? html`<span class="doubt">${count(row.undefined)}</span>` : '0') },
          { label: 'Copies', number: true, show: (row) => count(row.copies) },
        ]} />`}
    <p class="below"><span>The most urgent first. Undefined: a message lacks what the condition asks for; <a href=${href('routes', 'try') + queryOf({ vhost: vhost === '/' ? undefined : vhost })}>try one</a> to see why. Counted since a route was changed, or the broker started${missing.size > 0 && ', also copies that were left out'}.${matching.length > DRAWN_MAX && ` The first ${DRAWN_MAX} of ${count(matching.length)}; filter to see others.`}</span></p></section>`;
}

function Endpoints({ who, vhost, data }) {
  const most = Math.max(1, ...data.endpoints.map((endpoint) => endpoint.lanes.reduce((sum, lane) => sum + lane.ready + lane.leased, 0)));
  const first = [...data.endpoints].sort((one, other) => one.exists - other.exists).slice(0, DRAWN_MAX);
  return html`<section class="sheet" aria-label="Endpoints"><header><h2>Endpoints <span class="count">${count(data.endpoints.length)}</span></h2></header>
    <div class="queues"><div class="queue-row head" aria-hidden="true"><span>Queue</span><span>Waiting and running, by urgency</span><span class="number">Waiting</span><span class="number">Running</span><span class="number">Expired</span></div>
      ${first.map((endpoint) => html`<${Endpoint} key=${endpoint.queue} who=${who} vhost=${vhost} endpoint=${endpoint} most=${most} names=${namesInto(data, endpoint)} />`)}</div>
    ${data.endpoints.length > DRAWN_MAX && html`<p class="below">The first ${DRAWN_MAX} of ${count(data.endpoints.length)}.</p>`}</section>`;
}

function Endpoint({ who, vhost, endpoint, most, names }) {
  const queue = useLanes(vhost, endpoint);
  const sum = (of) => endpoint.lanes.reduce((all, lane) => all + lane[of], 0);
  const by = `from ${few(names)}`;
  if (!endpoint.exists) {
    return html`<div class="queue-row"><span class="name">${endpoint.queue}<small>${by}</small></span><span class="middle"><span>${hasTag(who, 'monitoring') ? html`<span class="badge s2">is not there</span> <span class="muted">copies for it are left out</span>` : html`<span class="muted">You may not see it, or it is not there.</span>`}</span></span></div>`;
  }
  return html`<a class="queue-row" href=${href('queue', vhost, endpoint.queue)}>
    <span class="name">${endpoint.queue}<small>${by}</small></span>
    <span class="middle"><${Bar} queue=${queue} most=${most} />${waiting(queue) > 0 && html`<${LaneChips} queue=${queue} />`}</span>
    <span class="number" data-label="Waiting">${count(sum('ready'))}</span>
    <span class="number" data-label="Running">${count(sum('leased'))}</span>
    <span class="number" data-label="Expired">${count(sum('expired'))}</span></a>`;
}

// The lanes as bars want them, with the levels of their scheme. Only that of routes tells them by name; what another queue knows, it is asked.
function useLanes(vhost, endpoint) {
  const ofRoutes = endpoint.lanes.every((lane) => lane.name !== lane.lane);
  const queue = useAnswer(ofRoutes ? null : queuePath(vhost, endpoint.queue), 10_000).data;
  const known = new Map(queue?.lanes.map((lane) => [lane.lane, lane.level]));
  const level = (lane) => (ofRoutes ? (lane.lane === 'default' ? 0 : 10 - Number(lane.lane)) : known.get(lane.lane));
  const label = (lane) => (ofRoutes ? (lane.lane === 'default' ? 'no priority' : `Pri${lane.lane}`) : lane.lane);
  const lanes = endpoint.lanes.map((lane) => ({ lane: label(lane), level: level(lane), ready: lane.ready, leased: lane.leased, delayed: 0 }));
  if (lanes.some((lane) => lane.level === undefined)) return { lanes };
  return ofRoutes ? { scheme: 'route', order: 'priority', lanes } : { scheme: queue.settings.scheme, order: queue.settings.order, lanes };
}
