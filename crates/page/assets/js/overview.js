// All queues at once: what is waiting, how urgent, how long; what needs somebody first.
import { query as queryOf } from './api.js';
import { Bar, LaneChips, waiting } from './bar.js';
import { Chart, Spark, TIMES, WHOLE, style, times } from './chart.js';
import { Empty, Title } from './common.js';
import { bytes, count, duration, plural, rate } from './format.js';
import { html, useEffect, useRef, useState } from './lib.js';
import { openPublish } from './publish.js';
import { declareQueue } from './queue-actions.js';
import { href, setQuery } from './route.js';
import { say, severityWord, worst } from './trouble.js';
import { useAnswer, useNow, useSettled } from './use.js';

const SORTS = [
  { value: 'trouble', label: 'Trouble first' },
  { value: 'oldest', label: 'Oldest urgent first' },
  { value: 'ready', label: 'Most waiting' },
  { value: 'published', label: 'Most coming in' },
  { value: 'delivered', label: 'Most going out' },
  { value: 'name', label: 'Name' },
];

export function Overview({ look, query }) {
  const history = useAnswer(`/v1/overview/history${queryOf({ vhost: query.vhost })}`, 10_000).data;
  const vhosts = useAnswer('/v1/vhosts').data?.vhosts ?? [];
  if (!look) return html`<main id="main" class="waits" aria-busy="true">Looking …</main>`;
  return html`<main id="main" tabindex="-1">
    <${Title} sub=${`${plural(look.totals.queues, 'queue')}, ${plural(look.totals.consumers, 'consumer')}, version ${look.broker.version}`}
      actions=${html`<button onClick=${() => openPublish({ vhost: query.vhost })}>Publish a message</button><button class="primary" onClick=${() => declareQueue(query.vhost ?? '/')}>New queue</button>`}>Overview</${Title}>
    <${Figures} look=${look} history=${history?.totals} />
    <${Attention} look=${look} />
    <${Queues} look=${look} query=${query} vhosts=${vhosts} />
    ${history?.totals && history.totals.ready.length > 1 && html`<${Charts} history=${history} />`}
    <p class="muted hint">Store ${bytes(look.broker.store_bytes)}${look.broker.disk_free_bytes !== undefined && `, ${bytes(look.broker.disk_free_bytes)} free on its disk`}; messages take ${bytes(look.broker.memory_bytes)} of memory${look.broker.spilled > 0 ? `, ${count(look.broker.spilled)} wait on disk only` : ''}.</p>
  </main>`;
}

function Figures({ look, history }) {
  const { totals } = look;
  const figure = (label, value, values, bad) => html`<div class="figure">
    <div class="label">${label}</div><div class="value ${bad ? 'bad' : ''}">${value}</div>
    ${values && html`<${Spark} values=${values} label=${`${label}, the last hour`} />`}
  </div>`;
  return html`<section class="sheet figures" aria-label="All queues together">
    ${figure('Waiting', count(totals.ready), history?.ready)}
    ${figure('Running', count(totals.leased), history?.leased)}
    ${figure('Coming in', rate(totals.published), history?.published)}
    ${figure('Going out', rate(totals.delivered), history?.delivered)}
    ${figure('Dead letters', count(totals.dead), history?.dead, totals.dead > 0)}
  </section>`;
}

// What needs somebody: stands still, or will.
function Attention({ look }) {
  const queues = look.queues.filter((queue) => worst(queue) >= 2);
  return html`<section class="sheet" aria-label="Needs attention">
    <header><h2>Needs attention</h2></header>
    ${queues.length === 0
      ? html`<p class="well">Nothing stands still, and nothing is about to.</p>`
      : html`<ul class="troubles">${queues.slice(0, 8).map((queue) => {
          const [what, then] = say(queue.troubles[0]);
          return html`<li class="trouble-row" key=${queue.vhost + queue.name}>
            <span class="badge s${worst(queue)}">${severityWord[worst(queue)]}</span>
            <p><a href=${href('queue', queue.vhost, queue.name)}><b>${queue.name}</b></a>${queue.vhost !== '/' && html` <span class="muted">in ${queue.vhost}</span>`}: ${what}. <span class="muted">${then}</span></p>
            <a class="button" href=${href('queue', queue.vhost, queue.name)}>Look</a>
          </li>`;
        })}</ul>`}
    ${queues.length > 8 && html`<p class="below">and ${queues.length - 8} more queues</p>`}
  </section>`;
}

function Queues({ look, query, vhosts }) {
  const [name, setName] = useState(query.name ?? '');
  const settled = useSettled(name);
  const began = useRef(false);
  useEffect(() => {
    if (began.current) setQuery({ name: settled });
    began.current = true;
  }, [settled]);
  const most = Math.max(1, ...look.queues.map(waiting));
  const none = look.totals.queues === 0;
  return html`<section class="sheet" aria-label="Queues">
    <header>
      <h2>Queues <span class="count">${count(look.matching)}</span></h2>
      <div class="filters">
        ${vhosts.length > 1 && html`<select aria-label="Virtual host" value=${query.vhost ?? ''} onChange=${(event) => setQuery({ vhost: event.target.value })}>
          <option value="">All virtual hosts</option>${vhosts.map((vhost) => html`<option value=${vhost.name}>${vhost.name}</option>`)}</select>`}
        <select aria-label="Order" value=${query.sort ?? 'trouble'} onChange=${(event) => setQuery({ sort: event.target.value })}>
          ${SORTS.map((sort) => html`<option value=${sort.value}>${sort.label}</option>`)}
        </select>
        <input type="search" aria-label="Filter by name" placeholder="Filter by name ( / )" value=${name} onInput=${(event) => setName(event.target.value)} />
      </div>
    </header>
    ${none
      ? html`<${Empty} title="No queue yet"><p>Make one here, or let a program declare it:</p><pre>overtake queue declare jobs scheme=named
overtake publish jobs hello --priority high</pre><button class="primary" onClick=${() => declareQueue(query.vhost ?? '/')}>New queue</button></${Empty}>`
      : look.queues.length === 0
        ? html`<${Empty} title="No queue matches"><p>None has “${query.name}” in its name. <button class="small" onClick=${() => setName('')}>Show all</button></p></${Empty}>`
        : html`<div class="queues">
            <div class="queue-row head" aria-hidden="true"><span>Queue</span><span>Waiting and running, by urgency</span><span class="number">In</span><span class="number">Out</span><span class="number">Consumers</span></div>
            ${look.queues.map((queue) => html`<${Row} key=${queue.vhost + '\n' + queue.name} queue=${queue} most=${most} />`)}
          </div>`}
    ${look.matching > look.queues.length && html`<p class="below">The first ${count(look.queues.length)} of ${count(look.matching)}; filter to see others.</p>`}
  </section>`;
}

function Row({ queue, most }) {
  const sum = (of) => queue.lanes.reduce((all, lane) => all + lane[of], 0);
  const trouble = queue.troubles[0];
  const dead = sum('dead');
  const roles = { history: 'history', 'dead-letters': 'dead letters of others' };
  return html`<a class="queue-row" href=${href('queue', queue.vhost, queue.name)}>
    <span class="name">${queue.name}<small>${queue.vhost !== '/' ? `${queue.vhost} · ` : ''}${roles[queue.role] ?? (queue.order === 'fifo' ? 'first in, first out' : queue.picker)}${queue.paused ? ' · paused' : ''}</small></span>
    <span class="middle">
      <${Bar} queue=${queue} most=${most} />
      <${LaneChips} queue=${queue} />
    </span>
    <span class="number" data-label="In">${rate(sum('published'))}</span>
    <span class="number" data-label="Out">${rate(sum('delivered'))}</span>
    <span class="number" data-label="Consumers">${count(queue.consumers)}${queue.waiting > 0 ? html`<br /><small class="muted" title="Requests that wait for a message">${count(queue.waiting)} ask over HTTP</small>` : ''}${queue.max_active ? html`<br /><small class="muted">${count(sum('leased'))} of ${count(queue.max_active)} run</small>` : ''}${dead > 0 ? html`<br /><small class="badge s1">${count(dead)} dead</small>` : ''}</span>
    ${trouble && html`<span class="trouble"><span class="badge s${trouble.severity}">${say(trouble)[0]}</span></span>`}
  </a>`;
}

function Charts({ history }) {
  useNow(60_000);
  const { totals, step_ms: step } = history;
  const at = times(totals.until, step, totals.ready.length);
  return html`<section class="sheet" aria-label="The last hour">
    <header><h2>The last hour</h2>${history.lanes_without_samples > 0 && html`<span class="hint">${count(history.lanes_without_samples)} lanes are not in it: too many are busy</span>`}</header>
    <div class="inside grid">
      <${Chart} title="Messages per second" times=${at} show=${(value) => rate(value)} series=${[
        { label: 'in', values: totals.published, colour: style('--accent') },
        { label: 'out', values: totals.delivered, colour: style('--good') },
      ]} />
      <${Chart} title="Waiting" steps=${WHOLE} times=${at} show=${(value) => count(Math.round(value))} series=${[{ label: 'waiting', values: totals.ready, colour: style('--accent') }]} />
      <${Chart} title="Longest of the queues’ p95 waits" times=${at} steps=${TIMES} show=${duration} series=${[{ label: 'p95', values: totals.wait_p95_ms, colour: style('--warn') }]} />
    </div>
  </section>`;
}
