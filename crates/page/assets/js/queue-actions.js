// What one can do to a queue: asked first, done, said, and taken back where that can be.
import { api, queuePath } from './api.js';
import { ask } from './dialog.js';
import { exact, plural } from './format.js';
import { html } from './lib.js';
import { go, href } from './route.js';
import { toast, toastProblem } from './toast.js';

// Does something and says what came of it; a problem is said, too.
export async function attempt(work) {
  try {
    return (await work()) ?? true;
  } catch (problem) {
    toastProblem(problem);
    return null;
  }
}

// Changes some settings and leaves the others as they are; the way back sets those that were.
export async function changeSettings(vhost, name, change, said, done) {
  await attempt(async () => {
    const path = queuePath(vhost, name);
    const { settings } = await api.get(path);
    const before = Object.fromEntries(Object.keys(change).map((key) => [key, settings[key] ?? null]));
    await api.patch(path, change);
    const back = async () => {
      await api.patch(path, before);
      done?.();
    };
    toast(said, { undo: back });
    done?.();
  });
}

export async function pause(vhost, name, paused, running, done) {
  const sure = await ask(
    paused
      ? {
          title: `Pause ${name}?`,
          text: `Nothing more is given out of it, to nobody. ${running ? `The ${plural(running, 'message')} that somebody works on now go on. ` : ''}Publishers go on, and what they publish waits.`,
          way: 'Resume takes it back, at any time.',
          verb: 'Pause',
        }
      : { title: `Resume ${name}?`, text: 'What waits is given out again at once, the most urgent first.', way: 'Pause takes it back.', verb: 'Resume' },
  );
  if (sure) await changeSettings(vhost, name, { paused }, paused ? `${name} is paused.` : `${name} goes on.`, done);
}

export async function changeCap(vhost, name, now, done) {
  const said = await ask({
    title: `How many may run at once?`,
    text: `Of ${name}, over all consumers together. What runs already goes on, also when it is more.`,
    fields: [{ name: 'cap', label: 'At most', kind: 'number', value: now, min: 0, hint: '0: as many as consumers take' }],
    way: 'Can be undone.',
    verb: 'Change',
  });
  if (!said) return;
  const cap = Number(said.cap);
  await changeSettings(vhost, name, { max_active: cap }, cap ? `At most ${exact(cap)} of ${name} run at once.` : `${name} has no cap any more.`, done);
}

export async function purge(vhost, name, status, number, done) {
  const dead = status === 'dead';
  const sure = await ask({
    title: dead ? `Remove all dead letters of ${name}?` : `Purge ${name}?`,
    text: dead ? `${plural(number, 'dead letter')} will be gone.` : `Everything that waits or is delayed will be gone: ${plural(number, 'message')}. What somebody works on stays.`,
    way: html`<b>Nobody can take this back.</b> A snapshot of the store (<code>overtake store snapshot</code>) would keep a copy.`,
    verb: dead ? 'Remove them' : 'Purge',
    danger: true,
    type: name,
  });
  if (!sure) return;
  await attempt(async () => {
    const { count } = await api.post(queuePath(vhost, name, '/purge'), { ...(dead ? { status } : {}), expect: number });
    toast(`${plural(count, 'message')} removed from ${name}.`);
    done?.();
  });
}

export async function deleteQueue(vhost, name, number) {
  const sure = await ask({
    title: `Delete ${name}?`,
    text: `The queue, its bindings and its ${plural(number, 'message')} will be gone. Its consumers are told.`,
    way: html`<b>Nobody can take this back.</b>`,
    verb: 'Delete',
    danger: true,
    type: name,
  });
  if (!sure) return;
  await attempt(async () => {
    await api.delete(queuePath(vhost, name));
    toast(`${name} is deleted.`);
    go('#/');
  });
}

export async function replay(vhost, name, select, number, priorities, done) {
  const said = await ask({
    title: number === 1 ? 'Replay this dead letter?' : `Replay ${plural(number, 'dead letter')}?`,
    text: `They go back into ${name} as if they had never failed, and are tried again.`,
    fields: [
      {
        name: 'priority',
        label: 'Priority',
        kind: 'select',
        optional: true,
        value: '',
        options: [{ value: '', label: 'as before' }, ...priorities],
      },
    ],
    way: 'What still fails becomes a dead letter again.',
    verb: 'Replay',
  });
  if (!said) return;
  const promote = priorities.find((one) => String(one.value) === said.priority);
  await attempt(async () => {
    const { count } = await api.post(queuePath(vhost, name, '/replay'), { ...select, ...(select.id ? {} : { expect: number }), ...(promote ? { priority: promote.value } : {}) });
    toast(`${plural(count, 'message')} replayed.`);
    done?.();
  });
}

const SCHEMES = [
  { value: 'named', label: 'five names: critical, high, normal, low, background' },
  { value: 'ten-level', label: 'ten levels: 9 is most urgent' },
  { value: 'signed', label: 'any number, larger is more urgent; BULK to CRITICAL' },
  { value: 'route', label: 'ten levels: 0 is most urgent' },
];

export async function declareQueue(vhost) {
  const said = await ask({
    title: 'A new queue',
    text: vhost === '/' ? '' : `In the virtual host ${vhost}.`,
    fields: [
      { name: 'name', label: 'Name', placeholder: 'jobs' },
      { name: 'scheme', label: 'Priorities', kind: 'select', value: 'named', options: SCHEMES },
      { name: 'max_active', label: 'At most so many run at once', kind: 'number', value: 0, hint: '0: as many as consumers take' },
      { name: 'delivery_limit', label: 'Attempts before a message becomes a dead letter', kind: 'number', value: 0, hint: '0: it is tried again and again' },
    ],
    way: 'All of this but the priorities of messages that wait can be changed later.',
    verb: 'Make it',
  });
  if (!said) return;
  await attempt(async () => {
    const name = said.name.trim();
    await api.put(queuePath(vhost, name), {
      scheme: said.scheme,
      max_active: Number(said.max_active),
      delivery_limit: Number(said.delivery_limit),
    });
    toast(`${name} is there.`);
    go(href('queue', vhost, name));
  });
}
