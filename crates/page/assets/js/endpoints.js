// Endpoints and sources: what is sent to other systems, what is taken in from them, and how that goes.
import { api, enc, query as queryOf } from './api.js';
import { Empty, Facts, ProblemBox, Table, Tabs, Title, When } from './common.js';
import { ask } from './dialog.js';
import { bytes, count, duration, rate } from './format.js';
import { hasTag } from './layout.js';
import { html } from './lib.js';
import { attempt } from './queue-actions.js';
import { go, href, setQuery } from './route.js';
import { toast } from './toast.js';
import { useAnswer } from './use.js';

const KINDS = {
  endpoints: {
    one: 'endpoint',
    example: { queue: '$upstream', to: { webhook: { url: 'https://example.org/hook' } } },
    none: html`<p>What waits in a queue can be sent to another system, the most urgent first:</p><pre>overtake endpoint put cloud cloud.toml</pre>`,
    gone: 'What waits in its queue stays there.',
    pause: ['Pause', 'Nothing new is sent, and what waits stays where it is. What is under way is finished.'],
  },
  sources: {
    one: 'source',
    example: { from: { amqp: { url: 'amqp://rabbit.example', queue: 'requests' } }, to: { queue: 'requests' } },
    none: html`<p>What another system has can be taken in:</p><pre>overtake source put requests requests.toml</pre>`,
    gone: 'What it took in stays.',
    pause: ['Pause', 'Nothing more is taken in until it is resumed.'],
  },
};

const pathOf = (kind, name, vhost, below = '') => `/v1/${kind}/${enc(name)}${below}${queryOf({ vhost })}`;
const COLOURS = { idle: 'completed', running: 'completed', sending: 'running', connecting: 's2', waiting: 's2', blocked: 's2', paused: 'paused', down: 's3' };

const State = ({ of }) => html`<span class="badge ${COLOURS[of.state] ?? ''}">${of.state === 'elsewhere' ? `runs at ${of.broker}` : of.state}</span>`;

export function Endpoints({ who, parts, query }) {
  const kind = parts[0] === 'sources' || parts[1] === 'sources' ? 'sources' : 'endpoints';
  const name = parts[2];
  const vhost = query.vhost ?? '/';
  const vhosts = useAnswer('/v1/vhosts').data?.vhosts ?? [];
  const elsewhere = queryOf({ vhost: query.vhost });
  const at = (...below) => href('endpoints', ...below) + elsewhere;
  const tabs = [
    { name: 'endpoints', label: 'Endpoints', href: at('endpoints') },
    { name: 'sources', label: 'Sources', href: at('sources') },
  ];
  const may = hasTag(who, 'administrator');
  if (name) return html`<${One} key=${`${kind} ${vhost} ${name}`} kind=${kind} name=${name} vhost=${vhost} may=${may} back=${at(kind)} />`;
  return html`<main id="main" tabindex="-1">
    <${Title} sub="What waits in queues is sent to other systems, the most urgent first, and what they have is taken in"
      actions=${html`${vhosts.length > 1 && html`<select aria-label="Virtual host" value=${vhost} onChange=${(event) => setQuery({ vhost: event.target.value })}>${vhosts.map((one) => html`<option value=${one.name}>${one.name}</option>`)}</select>`}
        ${may && html`<button class="primary" onClick=${() => edit({ kind, vhost })}>New ${KINDS[kind].one}</button>`}`}>Endpoints</${Title}>
    <${Tabs} label="Out and in" current=${kind} tabs=${tabs} />
    <${List} key=${kind + vhost} kind=${kind} vhost=${vhost} at=${at} />
  </main>`;
}

const sum = (of, ...keys) => of.lanes.reduce((all, lane) => all + keys.reduce((part, key) => part + lane[key], 0), 0);
const Wrong = ({ of }) => (of.last_error ? html`<span title=${of.last_error.why}>${of.last_error.why.slice(0, 90)}</span><br /><span class="muted"><${When} at=${of.last_error.at} /></span>` : html`<span class="muted">–</span>`);

function List({ kind, vhost, at }) {
  const { data, problem, reload } = useAnswer(`/v1/${kind}${queryOf({ vhost })}`, 2_000);
  if (problem && !data) return html`<${ProblemBox} problem=${problem} retry=${reload} />`;
  if (!data) return html`<p class="muted">Looking …</p>`;
  const rows = data[kind];
  if (rows.length === 0) return html`<section class="sheet"><${Empty} title=${`No ${KINDS[kind].one}`}>${KINDS[kind].none}</${Empty}></section>`;
  const name = { label: 'Name', show: (row) => html`<a href=${at(kind, row.name)}><b>${row.name}</b></a>` };
  const state = { label: 'State', show: (row) => html`<${State} of=${row} />` };
  const wrong = { label: 'Last error', show: (row) => html`<${Wrong} of=${row} />` };
  const columns = {
    endpoints: [
      name,
      { label: 'Queue', show: (row) => html`<a href=${href('queue', vhost, row.queue)}>${row.queue}</a>` },
      { label: 'To', show: (row) => row.kind },
      state,
      { label: 'Waiting', number: true, show: (row) => count(sum(row, 'ready', 'delayed')) },
      { label: 'On its way', number: true, show: (row) => count(sum(row, 'in_flight')) },
      { label: 'Sent', number: true, show: (row) => count(sum(row, 'sent')) },
      { label: 'Failed', number: true, show: (row) => count(sum(row, 'failed', 'refused')) },
      wrong,
    ],
    sources: [
      name,
      { label: 'From', show: (row) => row.kind },
      state,
      { label: 'Taken', number: true, show: (row) => count(row.taken) },
      { label: 'Refused', number: true, show: (row) => count(row.refused) },
      { label: 'Last', show: (row) => html`<${When} at=${row.last_taken} />` },
      wrong,
    ],
  }[kind];
  return html`<section class="sheet"><${Table} stack label=${kind === 'endpoints' ? 'Endpoints' : 'Sources'} rows=${rows} id=${(row) => row.name} columns=${columns} /></section>`;
}

// One of them, lane by lane.
function One({ kind, name, vhost, may, back }) {
  const { data, problem, reload } = useAnswer(pathOf(kind, name, vhost), 1_000);
  const { one, gone, pause } = KINDS[kind];
  const test = () => attempt(async () => {
    const said = await api.post(pathOf(kind, name, vhost, '/test'));
    if (said.ok) toast(`${name} connects, in ${duration(said.took_ms)}.`);
    else toast(`${name} does not connect: ${said.why}`, { kind: 'problem' });
  });
  const turn = (paused) => attempt(async () => {
    await api.post(pathOf(kind, name, vhost, paused ? '/pause' : '/resume'));
    toast(paused ? `${name} is paused.` : `${name} is resumed.`, { undo: () => api.post(pathOf(kind, name, vhost, paused ? '/resume' : '/pause')).then(reload) });
    reload();
  });
  const stop = async () => {
    if (await ask({ title: `Pause ${name}?`, text: pause[1], way: 'It can be resumed at any time, and stays paused over a restart.', verb: pause[0] })) turn(true);
  };
  const remove = async () => {
    const sure = await ask({ title: `Delete the ${one} ${name}?`, text: gone, way: 'Can be undone.', verb: 'Delete', danger: true });
    if (!sure) return;
    await attempt(async () => {
      await api.delete(pathOf(kind, name, vhost));
      toast(`${name} is deleted.`, { undo: () => api.put(pathOf(kind, name, vhost), data.definition) });
      go(back);
    });
  };
  const ofFile = data?.provenance === 'file';
  const actions = may && data && html`<button onClick=${test}>Test</button>
    ${data.state === 'paused' ? html`<button onClick=${() => turn(false)}>Resume</button>` : html`<button onClick=${stop}>Pause</button>`}
    ${!ofFile && html`<button onClick=${() => edit({ kind, vhost, name, definition: data.definition, done: reload })}>Change</button><button class="danger" onClick=${remove}>Delete</button>`}`;
  return html`<main id="main" tabindex="-1">
    <${Title} sub=${html`<a href=${back}>${kind === 'endpoints' ? 'Endpoints' : 'Sources'}</a>${ofFile && html` · in the server's configuration file, and changed there`}`} actions=${actions}>${name}</${Title}>
    ${problem && html`<${ProblemBox} problem=${problem} retry=${reload} />`}
    ${data && html`<section class="sheet" aria-label="How it goes"><div class="inside"><${Facts} of=${facts(kind, vhost, data)} /></div></section>
      ${data.last_error && html`<section class="sheet" aria-label="Last error"><header><h2>Last error</h2></header><div class="inside"><p>${data.last_error.why} <span class="muted"><${When} at=${data.last_error.at} /></span></p></div></section>`}
      ${kind === 'endpoints' && html`<${Lanes} lanes=${data.lanes} />`}
      <section class="sheet" aria-label="Definition"><header><h2>Definition</h2></header><div class="inside"><pre tabindex="0" aria-label="The definition">${JSON.stringify(data.definition, null, 2)}</pre></div></section>`}
  </main>`;
}

const facts = (kind, vhost, data) =>
  kind === 'endpoints'
    ? [
        ['State', html`<${State} of=${data} />`],
        ['Queue', html`<a href=${href('queue', vhost, data.queue)}>${data.queue}</a>`],
        ['To', data.kind],
        ['Connections', count(data.connections)],
        data.next_attempt && ['Goes on', html`<${When} at=${data.next_attempt} />`],
        data.budget && ['Today', `${bytes(data.budget.used_bytes)} of ${bytes(data.budget.daily_bytes)}, the last ${bytes(data.budget.reserve_bytes)} for urgent messages`],
      ]
    : [
        ['State', html`<${State} of=${data} />`],
        ['From', data.kind],
        ['Taken', `${count(data.taken)}, ${bytes(data.taken_bytes)}`],
        ['Refused', count(data.refused)],
        ['Last', html`<${When} at=${data.last_taken} />`],
      ];

function Lanes({ lanes }) {
  const number = (label, key) => ({ label, number: true, show: (lane) => count(lane[key]) });
  return html`<section class="sheet" aria-label="Lanes"><header><h2>Lanes</h2></header>
    ${lanes.length === 0
      ? html`<${Empty} title="Nothing has come yet"><p>Messages appear here, lane by lane.</p></${Empty}>`
      : html`<${Table} stack label="Lanes, the most urgent first" rows=${lanes} id=${(lane) => lane.lane} columns=${[
          { label: 'Lane', show: (lane) => html`<b>${lane.lane}</b>${lane.open_until && html` <span class="badge s2" title=${`${count(lane.failures)} failures in a row`}>left alone, goes on <${When} at=${lane.open_until} /></span>`}` },
          number('Waiting', 'ready'),
          { label: 'Oldest', number: true, show: (lane) => (lane.oldest_age_ms ? duration(lane.oldest_age_ms) : '–') },
          number('Aside', 'delayed'),
          number('On its way', 'in_flight'),
          number('Sent', 'sent'),
          { label: 'Lately', number: true, show: (lane) => (lane.sent_per_second ? `${rate(lane.sent_per_second)}, ${bytes(lane.sent_bytes_per_second)}/s` : '–') },
          { label: 'Bytes', number: true, show: (lane) => bytes(lane.sent_bytes) },
          number('Failed', 'failed'),
          number('Refused', 'refused'),
          number('Expired', 'expired'),
        ]} />`}</section>`;
}

// A new one, or another definition of one.
async function edit({ kind, vhost, name, definition, done }) {
  const { one, example } = KINDS[kind];
  const said = await ask({
    title: name ? `Change ${name}` : `A new ${one}`,
    wide: true,
    fields: [
      ...(name ? [] : [{ name: 'name', label: 'Name', placeholder: 'cloud' }]),
      { name: 'definition', label: 'Definition', kind: 'area', rows: 14, value: JSON.stringify(definition ?? example, null, 2), hint: 'As in the configuration file, in JSON. Secrets are named: { "env": "OVERTAKE_SECRET_…" }' },
    ],
    way: name ? 'The definition of now can be set again.' : 'It can be deleted.',
    verb: name ? 'Change it' : 'Make it',
  });
  if (!said) return;
  const called = name ?? said.name.trim();
  await attempt(async () => {
    let next;
    try {
      next = JSON.parse(said.definition);
    } catch (error) {
      throw Object.assign(new Error(`The definition is no JSON: ${error.message}`), { hint: 'nothing was changed' });
    }
    await api.put(pathOf(kind, called, vhost), next);
    const undo = () => (definition ? api.put(pathOf(kind, called, vhost), definition) : api.delete(pathOf(kind, called, vhost)));
    toast(name ? `${called} is changed.` : `${called} is there.`, { undo: () => undo().then(() => done?.()) });
    if (name) done?.();
    else go(href('endpoints', kind, called) + queryOf({ vhost: vhost === '/' ? undefined : vhost }));
  });
}
