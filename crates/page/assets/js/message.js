// One message: what it says, where it stands, what became of it, what one can do about it.
import { api, enc, queuePath } from './api.js';
import { Facts, Holder, ProblemBox, Segments, When, copy } from './common.js';
import { ask } from './dialog.js';
import { bytes, count, duration } from './format.js';
import { html, useState } from './lib.js';
import { given, priorities } from './priority.js';
import { attempt, replay } from './queue-actions.js';
import { href } from './route.js';
import { toast } from './toast.js';
import { useAnswer } from './use.js';

export function Detail({ vhost, name, settings, may, id, lane, close, done }) {
  const path = queuePath(vhost, name, `/messages/${enc(id)}`);
  const { data: message, problem, reload } = useAnswer(path, 2_000);
  const after = () => {
    reload();
    done();
  };
  if (!message) {
    const gone = problem?.status === 404;
    return html`<section class="sheet detail" aria-label="Message"><header><h2 class="mono">${id}</h2><button class="icon" aria-label="Close" onClick=${close}>×</button></header>
      <div class="inside">${gone ? html`<${Gone} vhost=${vhost} id=${id} settings=${settings} />` : problem ? html`<${ProblemBox} problem=${problem} />` : 'Looking …'}</div></section>`;
  }
  return html`<section class="sheet detail" aria-label="Message">
    <header><h2 class="mono">${message.id}</h2><button class="icon" aria-label="Close" onClick=${close}>×</button></header>
    <section>
      <p><span class="badge ${message.status}">${problem ? 'gone' : { ready: 'waits', leased: 'runs', delayed: 'delayed', dead: 'dead' }[message.status]}</span>
      ${' '}<i class="dot" style=${{ '--lane': lane.get(message.lane) }}></i>${message.lane}
      ${message.position !== undefined && !problem && html` · ${message.position === 0 ? 'goes next' : `${count(message.position)} go before it`}`}</p>
    </section>
    ${problem && html`<section><${Gone} vhost=${vhost} id=${id} settings=${settings} /></section>`}
    ${!problem && html`<section><${Actions} message=${message} vhost=${vhost} name=${name} settings=${settings} may=${may} done=${after} close=${close} /></section>`}
    <${Body} message=${message} />
    ${message.progress && html`<${Output} title="Output so far" text=${message.progress.output} live />`}
    ${message.record && html`<${RecordOf} record=${message.record} />`}
    <${PastAttempts} of=${message.past_attempts} />
    <section><h3>Properties</h3><${Facts} rows of=${[
      ['Priority', `${message.priority}${message.lane !== String(message.priority) ? `, lane ${message.lane}` : ''}`],
      ['Published', html`<${When} at=${message.published_at} />`],
      ['Size', bytes(message.bytes)],
      ['Attempts', count(message.delivery_count)],
      message.holder && ['Held by', html`<${Holder} of=${message.holder} />`],
      message.holder?.since && ['Held since', html`<${When} at=${message.holder.since} />`],
      message.started && ['Work begun', html`<${When} at=${message.started} />`],
      message.deadline && ['Lease ends', html`<${When} at=${message.deadline} />`],
      message.due_at && ['Due', html`<${When} at=${message.due_at} />`],
      message.expires_at && ['Expires', html`<${When} at=${message.expires_at} />`],
      message.key && ['Key', html`<span class="mono">${message.key}</span>`],
      message.user_id && ['User', message.user_id],
      message.content_type && ['Media type', message.content_type],
      ['Sequence', message.seq],
      message.exchange !== undefined && ['Came by', `${message.exchange} with ${message.routing_keys.join(', ')}`],
      ...Object.entries(message.properties ?? {}).map(([key, value]) => [key, html`<span class="mono">${String(value)}</span>`]),
    ]} /></section>
    ${Object.keys(message.headers).length > 0 && html`<section><h3>Headers</h3><${Facts} rows of=${Object.entries(message.headers).map(([key, value]) => [key, html`<span class="mono">${String(value)}</span>`])} /></section>`}
    <${Trace} message=${message} />
    <${History} message=${message} name=${name} gone=${Boolean(problem)} />
  </section>`;
}

// It was here a moment ago, or never.
const Gone = ({ vhost, id, settings }) => html`<p><b>It is not in this queue any more</b>: it was acknowledged, moved or removed.${settings.history && html` What became of it may be in <a href=${href('queue', vhost, settings.history, 'messages', id)}>${settings.history}</a>.`}</p>`;

function Actions({ message, vhost, name, settings, may, done, close }) {
  const path = queuePath(vhost, name, `/messages/${enc(message.id)}`);
  const all = priorities(settings.scheme);
  const movable = message.status === 'ready' || message.status === 'delayed';
  const place = all.findIndex((one) => String(one.value) === String(message.priority));
  const move = (to) =>
    attempt(async () => {
      await api.put(`${path.replace('?', '/priority?')}`, { priority: to });
      toast(`${message.id} is ${to} now.`, {
        undo: async () => {
          await api.put(`${path.replace('?', '/priority?')}`, { priority: message.priority });
          done();
        },
      });
      done();
    });
  const choose = async () => {
    const said = await ask({
      title: `Another priority for ${message.id}?`,
      text: 'It keeps its age: among those of the new priority it stands where it would have stood from the start.',
      fields: [{ name: 'priority', label: 'Priority', kind: 'select', value: String(message.priority), options: all }],
      way: 'Can be undone as long as it waits.',
      verb: 'Change',
    });
    if (said) await move(given(said.priority));
  };
  const cancel = async () => {
    const sure = await ask({
      title: `Cancel ${message.id}?`,
      text: message.status === 'leased' ? 'Who works on it is told when it next asks for more time, and ends its work.' : 'It ends at once, as cancelled.',
      way: settings.history ? `It is in ${settings.history} then, and can be retried from there.` : 'Nobody can take this back: the queue has no history.',
      verb: 'Cancel it',
      danger: true,
    });
    if (!sure) return;
    await attempt(async () => {
      await api.post(path.replace('?', '/cancel?'));
      toast(message.status === 'leased' ? `Who works on ${message.id} will be told.` : `${message.id} is cancelled.`);
      done();
    });
  };
  const remove = async () => {
    const sure = await ask({ title: `Remove ${message.id}?`, text: message.status === 'leased' ? 'Somebody works on it; that work will count for nothing.' : 'It will be gone.', way: html`<b>Nobody can take this back.</b>`, verb: 'Remove', danger: true });
    if (!sure) return;
    await attempt(async () => {
      await api.delete(path);
      toast(`${message.id} is removed.`);
      close();
      done();
    });
  };
  return html`<div class="actions">
    ${movable && may.read && may.write && html`
      ${place > 0 && html`<button class="small" onClick=${() => move(all[place - 1].value)} title=${`to ${all[place - 1].label}`}>↑ Raise</button>`}
      ${place >= 0 && place < all.length - 1 && html`<button class="small" onClick=${() => move(all[place + 1].value)} title=${`to ${all[place + 1].label}`}>↓ Lower</button>`}
      <button class="small" onClick=${choose}>Priority …</button>`}
    ${message.status === 'dead' && may.read && may.write && html`<button class="small primary" onClick=${() => replay(vhost, name, { id: message.id }, 1, all, done)}>Replay</button>`}
    ${message.record && may.read && may.write && html`<button class="small primary" onClick=${() => replay(vhost, name, { id: message.id }, 1, all, done)}>Do it again</button>`}
    ${message.status !== 'dead' && !message.record && !message.cancel_asked && may.read && html`<button class="small" onClick=${cancel}>Cancel</button>`}
    ${may.read && html`<button class="small" onClick=${remove}>Remove</button>`}
  </div>`;
}

const decode = (base64) => Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));

function Body({ message }) {
  const text = message.body;
  const bytesOf = () => (text !== undefined ? new TextEncoder().encode(text) : decode(message.body_base64 ?? ''));
  const parsed = (() => {
    try {
      return text?.trim().match(/^[[{"]/) ? JSON.parse(text) : undefined;
    } catch {
      return undefined;
    }
  })();
  const [as, setAs] = useState(null);
  const shown = as ?? (parsed !== undefined ? 'json' : text !== undefined ? 'text' : 'hex');
  const options = [parsed !== undefined && { value: 'json', label: 'JSON' }, text !== undefined && { value: 'text', label: 'Text' }, { value: 'hex', label: 'Hex' }].filter(Boolean);
  return html`<section><h3>Body <${Segments} label="Show the body as" value=${shown} options=${options} change=${setAs} /></h3>
    ${bytesOf().length === 0 ? html`<p class="muted">empty</p>` : html`<pre class=${shown === 'hex' ? 'hex' : ''} tabindex="0">${shown === 'json' ? html`<${Json} value=${parsed} />` : shown === 'hex' ? hex(bytesOf()) : text}</pre>`}
    ${text && html`<button class="small quiet" onClick=${() => { copy(text); toast('Copied.'); }}>Copy</button>`}
  </section>`;
}

const HEX_MAX = 16_384;

function hex(all) {
  const lines = [];
  for (let at = 0; at < Math.min(all.length, HEX_MAX); at += 16) {
    const part = [...all.slice(at, at + 16)];
    const numbers = part.map((byte) => byte.toString(16).padStart(2, '0')).join(' ').padEnd(47);
    const text = part.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : '.')).join('');
    lines.push(`${at.toString(16).padStart(6, '0')}  ${numbers}  ${text}`);
  }
  if (all.length > HEX_MAX) lines.push(`… ${bytes(all.length - HEX_MAX)} more`);
  return lines.join('\n');
}

// JSON with its parts in colours.
function Json({ value, depth = 0 }) {
  const pad = '  '.repeat(depth + 1);
  const end = '  '.repeat(depth);
  if (Array.isArray(value)) {
    if (!value.length) return '[]';
    return html`[${value.map((one, at) => html`${'\n' + pad}<${Json} value=${one} depth=${depth + 1} />${at < value.length - 1 ? ',' : ''}`)}${'\n' + end}]`;
  }
  if (value && typeof value === 'object') {
    const entries = Object.entries(value);
    if (!entries.length) return '{}';
    return html`{${entries.map(([key, one], at) => html`${'\n' + pad}<span class="json-key">${JSON.stringify(key)}</span>: <${Json} value=${one} depth=${depth + 1} />${at < entries.length - 1 ? ',' : ''}`)}${'\n' + end}}`;
  }
  return html`<span class=${typeof value === 'string' ? 'json-text' : 'json-other'}>${JSON.stringify(value)}</span>`;
}

export const Output = ({ title, text, live }) => html`<section><h3>${title}${live && html` <span class="badge running">live</span>`}</h3><pre class="output" tabindex="0" ref=${(node) => node && live && (node.scrollTop = node.scrollHeight)}>${text || ' '}</pre></section>`;

export function RecordOf({ record }) {
  const took = record.started && new Date(record.finished) - new Date(record.started);
  return html`<section><h3>How it went <span class="badge ${record.ending}">${record.ending}</span></h3><${Facts} rows of=${[
      ['In', `${record.queue}, ${record.lane}`],
      record.started && ['Waited', duration(new Date(record.started) - new Date(record.queued))],
      record.started && ['Took', duration(took)],
      ['Ended', html`<${When} at=${record.finished} />`],
      ['Attempts', count(record.attempts)],
      record.exit_code !== undefined && ['Exit code', record.exit_code],
      record.error && ['Error', record.error],
    ]} /></section>
    ${record.output && html`<${Output} title="Output" text=${record.output} />`}`;
}

// How an attempt ended, in words. The error `exit 3` says no more than the exit code.
export function attemptText(one) {
  const code = one.exit_code !== undefined && `exit code ${one.exit_code}`;
  return [one.ending.replaceAll('_', ' '), code, one.error !== `exit ${one.exit_code}` && one.error].filter(Boolean).join(', ');
}

// The attempts that did not end the work, the last first.
export function PastAttempts({ of, forgotten }) {
  if (!of?.length && !forgotten) return null;
  return html`<section><h3>Earlier attempts</h3><ul class="story">${[...of ?? []].reverse().map((one) => html`<li class="bad">
    <span>${attemptText(one)}</span><${When} at=${one.finished_at} />
    ${one.output && html`<pre class="output" tabindex="0">${one.output}</pre>`}</li>`)}</ul>
    ${forgotten > 0 && html`<p class="muted">${forgotten} older ${forgotten === 1 ? 'attempt is' : 'attempts are'} not kept.</p>`}</section>`;
}

// Which trace it belongs to (W3C Trace Context).
function Trace({ message }) {
  const parent = message.headers.traceparent;
  const [, trace, span, flags] = String(parent ?? '').match(/^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/) ?? [];
  if (!trace) return null;
  return html`<section><h3>Trace</h3><${Facts} rows of=${[
    ['Trace', message.trace?.url ? html`<a class="mono" href=${message.trace.url} target="_blank" rel="noreferrer">${trace}</a>` : html`<span class="mono">${trace}</span>`],
    ['Published in span', html`<span class="mono">${span}</span>`],
    ['Sampled', Number.parseInt(flags, 16) & 1 ? 'yes' : 'no'],
  ]} /></section>`;
}

function History({ message, name, gone }) {
  const events = [{ at: message.published_at, what: message.exchange ? `published to ${message.exchange}` : 'published' }];
  for (const death of [...(message.deaths ?? [])].reverse()) {
    events.push({ at: death.at, bad: true, what: `died in ${death.queue === name ? 'this queue' : death.queue}: ${death.reason}${death.count > 1 ? `, ${death.count} times` : ''}, after ${death.delivery_count} ${death.delivery_count === 1 ? 'attempt' : 'attempts'}` });
  }
  if (message.record?.started) events.push({ at: message.record.started, what: `begun, attempt ${message.record.attempts}` });
  if (message.record) events.push({ at: message.record.finished, bad: message.record.ending !== 'completed', what: message.record.ending });
  if (message.started) events.push({ at: message.started, what: 'work begun' });
  const next = { ready: 'waits for its turn', leased: `runs${message.deadline ? ', its lease ends' : ''}`, delayed: 'is delayed until', dead: 'is dead, until somebody replays or removes it' }[message.status];
  return html`<section><h3>History</h3><ul class="story">
    ${events.map((event) => html`<li class=${event.bad ? 'bad' : ''}><span>${event.what}</span><${When} at=${event.at} /></li>`)}
    ${!message.record && !gone && html`<li class="now"><span>${next}</span>${(message.deadline || message.due_at) && html`<${When} at=${message.deadline ?? message.due_at} />`}</li>`}
  </ul></section>`;
}
