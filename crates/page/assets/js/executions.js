// Work with a memory: what waits, runs and has ended, each with its record and its output.
import { api, enc, query as queryOf } from './api.js';
import { Empty, Facts, Holder, ProblemBox, Segments, Title, When } from './common.js';
import { ask } from './dialog.js';
import { count, duration, exact, plural } from './format.js';
import { classes, html, useState } from './lib.js';
import { Output, PastAttempts, attemptText } from './message.js';
import { priorities } from './priority.js';
import { attempt } from './queue-actions.js';
import { go, href, setQuery } from './route.js';
import { toast } from './toast.js';
import { useAnswer, useNow } from './use.js';

const BASE = '/api/v1/admin/executions';
const PAGE = 50;

const of = (query, below = '', values = {}) => `${BASE}${below}${queryOf({ ...values, queue: query.queue, vhost: query.vhost })}`;

export function Executions({ parts, query }) {
  const id = parts[1];
  const status = query.status ?? '';
  const skip = Number(query.skip ?? 0);
  const queue = useAnswer(of(query, '/queue'), 2_000);
  const list = useAnswer(of(query, '', { status, priority: query.priority, user_id: query.user, limit: PAGE, skip }), 2_000);
  const rows = list.data?.executions ?? [];
  const reload = () => {
    list.reload();
    queue.reload();
  };
  const tail = location.hash.replace(/^[^?]*/, '');
  const missing = queue.problem?.status === 404;
  return html`<main id="main" tabindex="-1">
    <${Title} sub=${queue.data && `${plural(queue.data.queue_depth, 'waits', 'wait')}, ${count(queue.data.active_count)}${queue.data.max_concurrent ? ` of ${exact(queue.data.max_concurrent)}` : ''} run${queue.data.paused ? ' · paused' : ''}`}
      actions=${queue.data && html`<button onClick=${() => pauseAll(query, !queue.data.paused, reload)}>${queue.data.paused ? 'Resume' : 'Pause'}</button><button onClick=${() => limit(query, queue.data.max_concurrent, reload)}>How many at once …</button>`}
    >Executions</${Title}>
    ${missing
      ? html`<section class="sheet"><${Empty} title="There is no queue of executions"><p>They are a queue, its history, and workers:</p><pre>overtake exec create
overtake exec submit 'echo hello' --priority high
overtake work executions --slots 4 -- sh</pre><p>Another queue that has a history is shown too: ${html`<${QueueName} query=${query} />`}</p></${Empty}></section>`
      : html`<div class=${classes('work', id && 'open')}>
          <section class="sheet" aria-label="Executions">
            <header>
              <${Segments} label="Status" value=${status} change=${(value) => setQuery({ status: value, skip: '' })} options=${[['', 'All'], ['queued', 'Queued'], ['running', 'Running'], ['delayed', 'Delayed'], ['completed', 'Completed'], ['failed', 'Failed'], ['timeout', 'Timeout'], ['cancelled', 'Cancelled']].map(([value, label]) => ({ value, label }))} />
              <div class="filters">
                <select aria-label="Priority" value=${query.priority ?? ''} onChange=${(event) => setQuery({ priority: event.target.value, skip: '' })}><option value="">Any priority</option>${priorities('named').map((one) => html`<option value=${one.value}>${one.label}</option>`)}</select>
                <input type="search" aria-label="User" placeholder="User" value=${query.user ?? ''} onChange=${(event) => setQuery({ user: event.target.value, skip: '' })} />
                <${QueueName} query=${query} />
              </div>
            </header>
            ${list.problem && html`<${ProblemBox} problem=${list.problem} retry=${list.reload} />`}
            ${rows.length === 0 && list.data ? html`<${Empty} title="None"><p>${status || query.priority || query.user ? 'None is so.' : 'Submit one:'}</p>${!status && html`<pre>overtake exec submit 'echo hello' --priority high</pre>`}</${Empty}>` : html`<div class="scroll" tabindex="0" role="region" aria-label="List"><table aria-label="Executions"><thead><tr><th>Status</th><th>Id</th><th>Priority</th><th>User</th><th>Queued</th><th class="number">Waited</th><th class="number">Took</th><th class="number">Attempts</th></tr></thead><tbody>
              ${rows.map((row) => html`<tr key=${row.execution_id} class="link" onClick=${() => go(href('executions', row.execution_id) + tail)}>
                <td><span class="badge ${row.status}">${row.status}</span>${row.cancel_asked && html` <span class="badge cancelled">asked to end</span>`}</td>
                <td><a class="mono" href=${href('executions', row.execution_id) + tail}>${row.execution_id}</a></td>
                <td>${row.priority}</td><td>${row.user_id ?? html`<span class="muted">–</span>`}</td><td class="nowrap"><${When} at=${row.queued_at} /></td>
                <td class="number"><${Span} from=${row.queued_at} to=${row.started_at ?? row.finished_at} /></td>
                <td class="number">${row.started_at ? html`<${Span} from=${row.started_at} to=${row.finished_at} />` : '–'}</td>
                <td class="number" title=${row.last_attempt ? attemptText(row.last_attempt) : ''}>${row.attempts}</td></tr>`)}
            </tbody></table></div>`}
            <div class="below"><span>${list.data?.total !== undefined ? `${count(list.data.total)} in all` : ''}</span><span class="actions">${skip > 0 && html`<button class="small" onClick=${() => setQuery({ skip: Math.max(0, skip - PAGE) || '' })}>Newer</button>`}${rows.length === PAGE && html`<button class="small" onClick=${() => setQuery({ skip: skip + PAGE })}>Older</button>`}</span></div>
          </section>
          ${id && html`<${One} key=${id} id=${id} query=${query} reload=${reload} tail=${tail} />`}
        </div>`}
  </main>`;
}

function QueueName({ query }) {
  const [name, set] = useState(query.queue ?? '');
  return html`<input aria-label="Queue" placeholder="Queue: executions" value=${name} onInput=${(event) => set(event.target.value)} onChange=${(event) => setQuery({ queue: event.target.value, skip: '' })} />`;
}

// How long from then to then, or to now.
function Span({ from, to }) {
  const now = useNow();
  return duration((to ? new Date(to).getTime() : now) - new Date(from).getTime());
}

function One({ id, query, reload, tail }) {
  const { data: one, problem, reload: again } = useAnswer(of(query, `/${enc(id)}`), 1_000);
  const close = () => go(href('executions') + tail);
  const done = () => {
    again();
    reload();
  };
  if (!one) return html`<section class="sheet detail"><header><h2 class="mono">${id}</h2><button class="icon" aria-label="Close" onClick=${close}>×</button></header><div class="inside">${problem ? html`<${ProblemBox} problem=${problem} />` : 'Looking …'}</div></section>`;
  const runs = one.status === 'running';
  const over = Boolean(one.finished_at);
  const waits = one.status === 'queued' || one.status === 'delayed';
  return html`<section class="sheet detail" aria-label="Execution">
    <header><h2 class="mono">${id}</h2><button class="icon" aria-label="Close" onClick=${close}>×</button></header>
    <section><p><span class="badge ${one.status}">${one.status}</span> ${one.priority}${one.position !== undefined && one.position !== null && html` · ${one.position === 0 ? 'goes next' : `${count(one.position)} go before it`}`}</p>
      <div class="actions" style=${{ marginTop: '10px' }}>
        ${waits && html`<button class="small" onClick=${() => reprioritise(query, one, done)}>Priority …</button>`}
        ${!over && !one.cancel_asked && html`<button class="small" onClick=${() => cancel(query, one, done)}>Cancel</button>`}
        ${over && html`<button class="small primary" onClick=${() => retry(query, one, done)}>Do it again</button>`}
      </div></section>
    ${(one.output || runs) && html`<${Output} title=${runs ? 'Output so far' : 'Output'} text=${one.output ?? one.progress?.output ?? ''} live=${runs} />`}
    <section><h3>Record</h3><${Facts} rows of=${[
      ['Queued', html`<${When} at=${one.queued_at} />`],
      one.due_at && ['Due', html`<${When} at=${one.due_at} />`],
      one.started_at && ['Begun', html`<${When} at=${one.started_at} />`],
      one.finished_at && ['Ended', html`<${When} at=${one.finished_at} />`],
      one.started_at && ['Waited', html`<${Span} from=${one.queued_at} to=${one.started_at} />`],
      one.started_at && [over ? 'Took' : 'Runs for', html`<${Span} from=${one.started_at} to=${one.finished_at} />`],
      ['Attempts', one.attempts],
      one.holder && ['Held by', html`<${Holder} of=${one.holder} />`],
      one.user_id && ['User', one.user_id],
      one.key && ['Key', one.key],
      one.exit_code !== undefined && one.exit_code !== null && ['Exit code', one.exit_code],
      one.error && ['Error', one.error],
    ]} /></section><${PastAttempts} of=${one.past_attempts} forgotten=${one.forgotten_attempts} /></section>`;
}

async function reprioritise(query, one, done) {
  const said = await ask({ title: `Another priority for ${one.execution_id}?`, text: 'It keeps its age.', fields: [{ name: 'priority', label: 'Priority', kind: 'select', value: one.priority, options: priorities('named') }], way: 'Can be undone as long as it waits.', verb: 'Change' });
  if (!said) return;
  const put = (priority) => api.put(of(query, `/${enc(one.execution_id)}/priority`), { priority });
  await attempt(async () => {
    await put(said.priority);
    toast(`${one.execution_id} is ${said.priority} now.`, { undo: async () => { await put(one.priority); done(); } });
    done();
  });
}

async function cancel(query, one, done) {
  const sure = await ask({ title: `Cancel ${one.execution_id}?`, text: one.status === 'running' ? 'Who works on it is told when it next asks for more time, and ends its program.' : 'It ends at once.', way: '“Do it again” takes it back, as a new execution.', verb: 'Cancel it', danger: true });
  if (!sure) return;
  await attempt(async () => {
    await api.post(of(query, `/${enc(one.execution_id)}/cancel`));
    toast(`${one.execution_id} is cancelled, or will be.`);
    done();
  });
}

async function retry(query, one, done) {
  const sure = await ask({ title: `Do ${one.execution_id} again?`, text: 'It goes back into the queue, as new, with the priority it had.', way: 'It can be cancelled as long as it is not over.', verb: 'Do it again' });
  if (!sure) return;
  await attempt(async () => {
    await api.post(of(query, `/${enc(one.execution_id)}/retry`));
    toast(`${one.execution_id} waits again.`);
    done();
  });
}

async function pauseAll(query, paused, done) {
  const sure = await ask({ title: paused ? 'Pause executions?' : 'Resume executions?', text: paused ? 'None begins. What runs goes on.' : 'They begin again, the most urgent first.', way: 'Can be undone.', verb: paused ? 'Pause' : 'Resume' });
  if (!sure) return;
  const put = (to) => api.post(of(query, `/queue/${to ? 'pause' : 'resume'}`));
  await attempt(async () => {
    await put(paused);
    toast(paused ? 'Executions are paused.' : 'Executions go on.', { undo: async () => { await put(!paused); done(); } });
    done();
  });
}

async function limit(query, now, done) {
  const said = await ask({ title: 'How many may run at once?', text: 'Over all workers. What runs goes on.', fields: [{ name: 'limit', label: 'At most', kind: 'number', value: now, hint: '0: as many as workers take' }], way: 'Can be undone.', verb: 'Change' });
  if (!said) return;
  const put = (to) => api.put(of(query, '/queue/max_concurrent'), { max_concurrent: to });
  await attempt(async () => {
    await put(Number(said.limit));
    toast(`At most ${said.limit} run at once.`, { undo: async () => { await put(now); done(); } });
    done();
  });
}
