// One queue: what waits in it, who works, how it has been, how it is set.
import { api, enc, queuePath } from './api.js';
import { Bar, LaneChips } from './bar.js';
import { Chart, TIMES, WHOLE, times } from './chart.js';
import { Consumers } from './clients.js';
import { Empty, Facts, ProblemBox, Table, Tabs, Title } from './common.js';
import { ask } from './dialog.js';
import { bytes, count, duration, exact, plural, rate } from './format.js';
import { html } from './lib.js';
import { hasTag } from './layout.js';
import { Messages } from './messages.js';
import { openPublish } from './publish.js';
import { changeCap, changeSettings, deleteQueue, pause, purge, attempt } from './queue-actions.js';
import { href } from './route.js';
import { toast } from './toast.js';
import { say } from './trouble.js';
import { colour } from './urgency.js';
import { useAnswer } from './use.js';

export function Queue({ who, look, vhost, name, tab = 'messages', item }) {
  const { data: queue, problem, reload } = useAnswer(queuePath(vhost, name), 10_000);
  const now = look?.queues.find((one) => one.name === name && one.vhost === vhost);
  if (!queue) {
    return html`<main id="main" tabindex="-1">${
      problem
        ? html`<${Title}>${name}</${Title}><${ProblemBox} problem=${problem} retry=${reload} /><p><a href="#/">To the overview</a></p>`
        : html`<p class="muted">Looking …</p>`
    }</main>`;
  }
  const settings = queue.effective_settings ?? queue.settings;
  const may = Object.fromEntries((now?.rights ?? []).map((right) => [right, true]));
  const sum = (of) => (now?.lanes ?? queue.lanes).reduce((all, lane) => all + (lane[of] ?? 0), 0);
  const [ready, leased, dead] = [sum('ready'), sum('leased'), sum('dead')];
  const paused = now?.paused ?? settings.paused;
  const cap = now?.max_active ?? settings.max_active;
  const at = (which) => href('queue', vhost, name, which);
  const actions = html`
    ${may.write && html`<button onClick=${() => openPublish({ vhost, queue: name, scheme: settings.scheme })}>Publish</button>`}
    ${may.configure && html`<button onClick=${() => pause(vhost, name, !paused, leased, reload)}>${paused ? 'Resume' : 'Pause'}</button>
      <button onClick=${() => changeCap(vhost, name, settings.max_active, reload)}>Cap …</button>`}
    ${may.read && html`<button onClick=${() => purge(vhost, name, undefined, ready + sum('delayed'), reload)}>Purge</button>`}`;
  return html`<main id="main" tabindex="-1">
    <div><p class="crumb"><a href="#/">Queues</a>${vhost !== '/' ? ` · ${vhost}` : ''}</p>
    <${Title} actions=${actions} sub=${about(queue, settings)}>${name}${paused && html` <span class="badge paused">paused</span>`}</${Title}></div>
    ${now && html`<section class="sheet"><div class="inside">
      <${Bar} queue=${now} most=${Math.max(1, sum('ready') + sum('leased') + sum('delayed'))} />
      <div style=${{ display: 'flex', justifyContent: 'space-between', gap: '16px', flexWrap: 'wrap', marginTop: '8px' }}>
        <${LaneChips} queue=${now} />
        <span class="muted">${rate(sum('published'))} in, ${rate(sum('delivered'))} out · ${count(leased)}${cap ? ` of ${exact(cap)}` : ''} running · ${plural(now.consumers, 'consumer')}${now.waiting ? ` · ${count(now.waiting)} ask over HTTP` : ''}</span>
      </div>
      ${now.troubles.map((trouble) => { const [what, then] = say(trouble); return html`<p style=${{ marginTop: '8px' }}><span class="badge s${trouble.severity}">${what}</span> <span class="muted">${then}</span></p>`; })}
    </div></section>`}
    <${Tabs} label=${`Views of ${name}`} current=${tab} tabs=${[
      { name: 'messages', label: 'Messages', href: at('messages') },
      { name: 'lanes', label: 'Lanes', href: at('lanes') },
      { name: 'time', label: 'Over time', href: at('time') },
      { name: 'consumers', label: 'Consumers', href: at('consumers'), count: queue.consumers },
      { name: 'settings', label: 'Settings', href: at('settings') },
    ]} />
    ${tab === 'messages' && html`<${Messages} vhost=${vhost} name=${name} look=${now} settings=${settings} may=${may} item=${item} />`}
    ${tab === 'lanes' && html`<${Lanes} queue=${queue} now=${now} />`}
    ${tab === 'time' && html`<${OverTime} vhost=${vhost} name=${name} now=${now} />`}
    ${tab === 'consumers' && html`<${ConsumersOf} who=${who} vhost=${vhost} name=${name} queue=${queue} />`}
    ${tab === 'settings' && html`<${SettingsOf} vhost=${vhost} name=${name} queue=${queue} may=${may} reload=${reload} number=${ready + leased + dead + sum('delayed')} />`}
    ${dead > 0 && tab === 'messages' && html`<p class="hint">${count(dead)} dead ${dead === 1 ? 'letter lies' : 'letters lie'} in this queue: <a href=${`${at('messages')}?status=dead`}>look at them</a>${may.read && html`, or <button class="small" onClick=${() => purge(vhost, name, 'dead', dead, reload)}>remove all</button>`}.</p>`}
  </main>`;
}

const PICKERS = { strict: 'the most urgent goes first', aging_ms: 'the most urgent goes first, but what waits long gains', weighted: 'lanes take turns by weight' };

function about(queue, settings) {
  const order = settings.order === 'fifo' ? 'first in, first out' : (PICKERS[typeof settings.picker === 'string' ? settings.picker : Object.keys(settings.picker)[0]] ?? '');
  const words = [order, `priorities ${settings.scheme}`];
  if (settings.history) words.push(`history in ${settings.history}`);
  if (settings.delivery_limit) words.push(plural(settings.delivery_limit, 'attempt'));
  if (queue.policy) words.push(`by policy ${queue.policy}`);
  return words.join(' · ');
}

function Lanes({ queue, now }) {
  const kind = { lanes: queue.lanes, scheme: queue.settings.scheme, order: now?.order };
  const rows = queue.lanes.map((lane, at) => ({ ...lane, now: now?.lanes.find((one) => one.lane === lane.lane), colour: colour(kind, at) }));
  if (rows.length === 0) return html`<section class="sheet"><${Empty} title="No lane yet"><p>A lane is there as soon as a message of its priority came.</p></${Empty}></section>`;
  const columns = [
    { label: 'Lane', show: (row) => html`<i class="dot" style=${{ '--lane': row.colour }}></i>${row.lane}` },
    { label: 'Waiting', number: true, show: (row) => count((row.now ?? row).ready) },
    { label: 'Oldest', number: true, show: (row) => ((row.now ?? row).ready ? duration((row.now ?? row).oldest_age_ms) : '–') },
    { label: 'Running', number: true, show: (row) => count((row.now ?? row).leased) + (row.max_active ? ` of ${exact(row.max_active)}` : '') },
    { label: 'In', number: true, show: (row) => rate(row.now?.published) },
    { label: 'Out', number: true, show: (row) => rate(row.now?.delivered) },
    { label: 'Wait p50', number: true, show: (row) => duration(row.now?.wait_p50_ms) },
    { label: 'p95', number: true, show: (row) => duration(row.now?.wait_p95_ms) },
    { label: 'Published', number: true, show: (row) => count(row.published) },
    { label: 'Acknowledged', number: true, show: (row) => count(row.settled) },
    { label: 'Redelivered', number: true, show: (row) => count(row.redelivered) },
    { label: 'Expired', number: true, show: (row) => count(row.expired) },
    { label: 'Evicted', number: true, show: (row) => count(row.evicted) },
    { label: 'Dead', number: true, show: (row) => count(row.dead) },
    { label: 'Size', number: true, show: (row) => bytes(row.bytes) },
  ];
  return html`<section class="sheet"><${Table} label="Lanes, the most urgent first" columns=${columns} rows=${rows} id=${(row) => row.lane} /><p class="below">The most urgent first. Totals count since the broker started; rates and waits are those of the last second.</p></section>
    ${queue.keys && html`<${Keys} keys=${queue.keys} />`}`;
}

function Keys({ keys }) {
  const columns = [
    { label: 'Key', show: (row) => row.key || 'no key' },
    { label: 'Waiting', number: true, show: (row) => count(row.ready) },
    { label: 'Oldest', number: true, show: (row) => (row.ready ? duration(row.oldest_age_ms) : '–') },
    { label: 'Running', number: true, show: (row) => count(row.leased) },
    { label: 'Weight', number: true, show: (row) => exact(row.weight) },
  ];
  return html`<section class="sheet"><${Table} label="Keys with the most messages" columns=${columns} rows=${keys} id=${(row) => row.key} /><p class="below">The ${keys.length === 1 ? 'key' : `${keys.length} keys`} with the most messages waiting and running.</p></section>`;
}

function OverTime({ vhost, name, now }) {
  const { data } = useAnswer(`/v1/overview/history?vhost=${enc(vhost)}&queue=${enc(name)}`, 10_000);
  if (!data) return html`<p class="muted">Looking …</p>`;
  const kind = { lanes: data.lanes, scheme: now?.scheme, order: now?.order };
  const lanes = data.lanes.map((lane, at) => ({ ...lane, colour: colour(kind, at) }));
  const length = lanes[0]?.ready.length ?? 0;
  if (length < 2) return html`<section class="sheet"><${Empty} title="Nothing to draw yet"><p>A sample is taken every ten seconds; two make a line.</p></${Empty}></section>`;
  const at = times(data.until, data.step_ms, length);
  const of = (what) => lanes.map((lane) => ({ label: lane.lane, values: lane[what], colour: lane.colour }));
  const whole = (value) => count(Math.round(value));
  return html`<section class="sheet"><div class="inside grid">
    <${Chart} title="Waiting, by lane" times=${at} series=${of('ready')} show=${whole} steps=${WHOLE} stacked height=${200} />
    <${Chart} title="Wait until leased, p95, by lane" times=${at} series=${of('wait_p95_ms')} show=${duration} steps=${TIMES} height=${200} />
    <${Chart} title="Going out per second, by lane" times=${at} series=${of('delivered')} show=${rate} stacked height=${200} />
    <${Chart} title="Coming in per second, by lane" times=${at} series=${of('published')} show=${rate} stacked height=${200} />
    <${Chart} title="Age of the oldest, by lane" times=${at} series=${of('oldest_age_ms')} show=${duration} steps=${TIMES} height=${200} />
    <${Chart} title="Running, by lane" times=${at} series=${of('leased')} show=${whole} steps=${WHOLE} stacked height=${200} />
  </div></section>`;
}

function ConsumersOf({ who, vhost, name, queue }) {
  const allowed = hasTag(who, 'management');
  const { data, problem } = useAnswer(allowed ? `/api/consumers/${enc(vhost)}` : null, 3_000);
  const rows = (data ?? []).filter((one) => one.queue.name === name);
  const none = html`<${Empty} title="Nobody consumes it"><p>Consumers over AMQP are here, with their windows. Those that lease over HTTP (<code>overtake work</code>) come and go: ${count(queue.waiting)} wait for a message at the moment; what they hold is under <a href=${`${href('queue', vhost, name, 'messages')}?status=leased`}>running</a>.</p></${Empty}>`;
  if (!allowed) return html`<section class="sheet"><${Empty} title=${`${count(queue.consumers)} consumers`}><p>To see who they are takes the tag <code>management</code>.</p></${Empty}></section>`;
  return html`<section class="sheet">${problem ? html`<${ProblemBox} problem=${problem} />` : rows.length === 0 ? none : html`<${Consumers} rows=${rows} ofQueue />`}</section>`;
}

const GROUPS = {
  'Order': ['scheme', 'default_priority', 'order', 'picker', 'lanes', 'partitions', 'last_value', 'fair_keys', 'key_weights'],
  'How much runs': ['paused', 'max_active', 'group_limit', 'rate_limit', 'key_rate_limit', 'max_unacked', 'max_consumers', 'single_active_consumer'],
  'Failing': ['delivery_limit', 'backoff', 'visibility_timeout_ms', 'consumer_timeout_ms', 'run_timeout_ms', 'dead_letter', 'dead_letter_expired', 'dead_letter_evicted', 'history'],
  'Limits': ['max_length', 'max_bytes', 'overflow', 'reject_below', 'max_message_bytes', 'ttl_ms', 'max_ttl_ms', 'expire_at_once', 'evict_at_once', 'check_entire_queue_on_cleanup', 'expires_ms'],
};

// A setting as a change says it: one that is not there is null, and so is a part of a table that the other settings have alone.
function whole(key, settings, ...others) {
  const value = settings[key] ?? null;
  if (!['lanes', 'backoff'].includes(key) || value === null) return value;
  const parts = others.flatMap((other) => Object.keys(other[key] ?? {}));
  return { ...Object.fromEntries(parts.map((part) => [part, null])), ...value };
}

function SettingsOf({ vhost, name, queue, may, reload, number }) {
  const effective = queue.effective_settings ?? queue.settings;
  const show = (key, value) => {
    if (value === undefined || value === null) return html`<span class="muted">not set</span>`;
    if (key.endsWith('_ms') && typeof value === 'number') return value ? duration(value) : html`<span class="muted">none</span>`;
    if (key.endsWith('_bytes') && typeof value === 'number') return value ? bytes(value) : html`<span class="muted">none</span>`;
    if (value === 0) return html`<span class="muted">none</span>`;
    if (typeof value === 'boolean') return value ? 'yes' : 'no';
    return typeof value === 'object' ? html`<span class="mono">${JSON.stringify(value)}</span>` : String(value);
  };
  const edit = async () => {
    const said = await ask({
      title: `Settings of ${name}`,
      wide: true,
      text: html`As JSON, all of them; <a href="/openapi.json" target="_blank">what each means</a>. What waits stays, and goes by the new settings from now on.`,
      fields: [{ name: 'json', label: 'Settings', kind: 'area', rows: 20, value: JSON.stringify(queue.settings, null, 2) }],
      way: 'Can be undone.',
      verb: 'Save',
    });
    if (!said) return;
    await attempt(async () => {
      let wanted;
      try {
        wanted = JSON.parse(said.json);
      } catch (error) {
        throw Object.assign(new Error(`That is no JSON: ${error.message}`), { hint: 'Nothing was changed.' });
      }
      // Only what was edited: somebody else may have changed other settings meanwhile.
      const keys = [...new Set([...Object.keys(wanted), ...Object.keys(queue.settings)])];
      const edited = keys.filter((key) => JSON.stringify(wanted[key]) !== JSON.stringify(queue.settings[key]));
      const of = (settings) => Object.fromEntries(edited.map((key) => [key, whole(key, settings, wanted, queue.settings)]));
      await api.patch(queuePath(vhost, name), of(wanted));
      toast(`${name} is set.`, { undo: async () => { await api.patch(queuePath(vhost, name), of(queue.settings)); reload(); } });
      reload();
    });
  };
  return html`<div class="grid">
    ${Object.entries(GROUPS).map(([title, keys]) => html`<section class="sheet"><header><h2>${title}</h2></header><div class="inside"><${Facts} rows of=${keys.map((key) => [key, html`${show(key, effective[key])}${JSON.stringify(effective[key]) !== JSON.stringify(queue.settings[key]) ? html` <span class="badge">by policy</span>` : ''}`])} /></div></section>`)}
    <section class="sheet"><header><h2>What it is</h2></header><div class="inside"><${Facts} rows of=${[
      ['Lasts', queue.identity.durable ? 'also over a restart' : 'until a restart'],
      ['Exclusive', queue.identity.exclusive ? 'of one connection' : 'no'],
      ['Goes by itself', queue.identity.auto_delete ? 'with its last consumer' : 'no'],
      ['Policy', queue.policy ?? 'none'],
      queue.operator_policy && ['Operator’s policy', queue.operator_policy],
    ]} /></div></section>
    ${may.configure && html`<section class="sheet"><header><h2>Change</h2></header><div class="inside actions">
      <button onClick=${edit}>Edit settings …</button>
      <button onClick=${() => changeDeliveryLimit(vhost, name, queue.settings, reload)}>Attempts …</button>
      <button class="danger" onClick=${() => deleteQueue(vhost, name, number)}>Delete the queue</button>
    </div></section>`}
  </div>`;
}

async function changeDeliveryLimit(vhost, name, settings, reload) {
  const said = await ask({
    title: 'How often is a message tried?',
    text: 'After so many attempts it becomes a dead letter. It counts for messages that fail from now on.',
    fields: [{ name: 'limit', label: 'Attempts', kind: 'number', value: settings.delivery_limit, hint: '0: again and again' }],
    way: 'Can be undone.',
    verb: 'Change',
  });
  if (said) await changeSettings(vhost, name, { delivery_limit: Number(said.limit) }, `${name} tries ${Number(said.limit) || 'again and again'}${Number(said.limit) ? ' times' : ''}.`, reload);
}
