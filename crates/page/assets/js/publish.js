// Publishing a message by hand.
import { api, queuePath } from './api.js';
import { Dialog, Field } from './dialog.js';
import { ProblemBox } from './common.js';
import { html, render, useState } from './lib.js';
import { given, priorities } from './priority.js';
import { toast } from './toast.js';
import { useAnswer } from './use.js';

// Opens the window; `vhost`, `queue` and `scheme` where they are known already.
export function openPublish(to) {
  const place = document.createElement('div');
  document.body.append(place);
  const close = () => {
    render(null, place);
    place.remove();
  };
  render(html`<${Publish} to=${to} close=${close} />`, place);
}

function Publish({ to, close }) {
  const vhost = to.vhost ?? '/';
  const queues = useAnswer(to.queue ? null : `/v1/queues?limit=1000&vhost=${encodeURIComponent(vhost)}`).data?.queues;
  const [values, set] = useState({ queue: to.queue ?? '', body: '', priority: '', type: 'text/plain', key: '', id: '', headers: '', delay: 0, ttl: '', times: 1 });
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const [more, setMore] = useState(false);
  const change = (name) => (value) => set((before) => ({ ...before, [name]: value }));
  const scheme = to.scheme ?? queues?.find((queue) => queue.name === values.queue)?.settings.scheme;
  const field = (name, label, more) => html`<${Field} field=${{ name: `publish-${name}`, label, ...more }} value=${values[name]} change=${change(name)} />`;

  const submit = async (event) => {
    event.preventDefault();
    setProblem(null);
    setBusy(true);
    try {
      const message = { body: values.body, content_type: values.type };
      if (values.priority !== '') message.priority = given(values.priority);
      if (values.key) message.key = values.key;
      if (values.id) message.id = values.id;
      if (values.headers.trim()) message.headers = headers(values.headers);
      if (Number(values.delay)) message.delay_ms = Math.round(Number(values.delay) * 1_000);
      if (values.ttl !== '') message.ttl_ms = Math.round(Number(values.ttl) * 1_000);
      const number = Math.max(1, Number(values.times));
      const many = number > 1 ? { messages: Array.from({ length: number }, () => message) } : message;
      const { messages } = await api.post(queuePath(vhost, values.queue, '/messages'), many);
      const first = messages[0];
      const ahead = first.position === undefined ? '' : first.position === 0 ? '; it goes next' : `; ${first.position} go before it`;
      toast(number > 1 ? `${number} messages are in ${values.queue}.` : first.duplicate ? `A message ${first.id} waits in ${values.queue} already; nothing was added.` : `${first.id} is in ${values.queue}, as ${first.priority}${ahead}.`);
      close();
    } catch (refused) {
      setProblem(refused);
      setBusy(false);
    }
  };

  return html`<${Dialog} title=${to.queue ? `Publish to ${to.queue}` : 'Publish a message'} onClose=${close}>
    <form onSubmit=${submit}>
      ${!to.queue &&
      html`<div class="field"><label for="field-queue">Queue</label>
        <input id="field-queue" list="queues" required value=${values.queue} onInput=${(event) => change('queue')(event.target.value)} autocomplete="off" />
        <datalist id="queues">${(queues ?? []).map((queue) => html`<option value=${queue.name} />`)}</datalist></div>`}
      ${field('body', 'Body', { kind: 'area', optional: true })}
      <div class="columns">
        ${scheme ? field('priority', 'Priority', { kind: 'select', optional: true, options: [{ value: '', label: 'the queue’s default' }, ...priorities(scheme)] }) : field('priority', 'Priority', { optional: true })}
        ${field('type', 'Media type', { optional: true })}
      </div>
      ${more
        ? html`<div class="columns">${field('key', 'Key', { optional: true })}${field('id', 'Id', { optional: true, hint: 'A second one of the same id is not added' })}</div>
            ${field('headers', 'Headers', { kind: 'area', rows: 2, optional: true, hint: 'One on each line: name: value' })}
            <div class="columns">${field('delay', 'Not before so many seconds', { kind: 'number' })}${field('ttl', 'Expires after so many seconds', { kind: 'number', optional: true })}</div>
            ${field('times', 'So many of it', { kind: 'number', min: 1 })}`
        : html`<button type="button" class="quiet" onClick=${() => setMore(true)}>Key, id, headers, delay …</button>`}
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      <footer><button type="button" onClick=${close}>Cancel</button><button type="submit" class="primary" disabled=${busy}>Publish</button></footer>
    </form>
  </${Dialog}>`;
}

// Lines of `name: value`.
export function headers(text) {
  const lines = text.split('\n').map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.indexOf(':');
      return at < 0 ? [line, ''] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
    }),
  );
}
