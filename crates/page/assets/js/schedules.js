// What is published by the clock.
import { api, enc, query as queryOf } from './api.js';
import { Empty, ProblemBox, Table, Title, When } from './common.js';
import { ask } from './dialog.js';
import { html } from './lib.js';
import { attempt } from './queue-actions.js';
import { href } from './route.js';
import { toast } from './toast.js';
import { useAnswer } from './use.js';

const path = (name, vhost) => `/v1/schedules/${enc(name)}${queryOf({ vhost })}`;

export function Schedules({ query }) {
  const vhost = query.vhost ?? '/';
  const { data, problem, reload } = useAnswer(`/v1/schedules${queryOf({ vhost })}`, 5_000);
  const remove = async (row) => {
    const sure = await ask({ title: `Delete the schedule ${row.name}?`, text: `The next occurrence, which waits in ${row.queue}, goes with it. What is due already stays.`, way: 'Can be undone.', verb: 'Delete', danger: true });
    if (!sure) return;
    await attempt(async () => {
      const whole = await api.get(path(row.name, vhost));
      await api.delete(path(row.name, vhost));
      toast(`${row.name} is deleted.`, { undo: async () => { await api.put(path(row.name, vhost), { queue: whole.queue, cron: whole.cron, timezone: whole.timezone, message: whole.message }); reload(); } });
      reload();
    });
  };
  return html`<main id="main" tabindex="-1"><${Title} sub="Messages by cron line: the queue holds each next occurrence" actions=${html`<button class="primary" onClick=${() => make(vhost, reload)}>New schedule</button>`}>Schedules</${Title}>
    <section class="sheet">${problem ? html`<${ProblemBox} problem=${problem} retry=${reload} />` : data?.schedules.length === 0 ? html`<${Empty} title="No schedule"><p>Each publishes a message again and again:</p><pre>overtake schedule put nightly jobs '0 3 * * *' 'make reports'</pre></${Empty}>` : html`<${Table} label="Schedules" rows=${data?.schedules ?? []} id=${(row) => row.name} columns=${[
      { label: 'Name', show: (row) => html`<b>${row.name}</b>${row.error && html`<br /><span class="badge s3">${row.error}</span>`}` },
      { label: 'Queue', show: (row) => html`<a href=${href('queue', vhost, row.queue)}>${row.queue}</a>` },
      { label: 'When', show: (row) => html`<code>${row.cron}</code> <span class="muted">${row.timezone}</span>` },
      { label: 'Next', show: (row) => html`<${When} at=${row.next[0]} />` },
      { label: 'As', show: (row) => row.user },
      { label: '', show: (row) => html`<button class="small" onClick=${() => remove(row)}>Delete</button>` },
    ]} />`}</section></main>`;
}

async function make(vhost, reload) {
  const said = await ask({
    title: 'A new schedule',
    fields: [
      { name: 'name', label: 'Name', placeholder: 'nightly' },
      { name: 'queue', label: 'Queue', placeholder: 'jobs' },
      { name: 'cron', label: 'When', placeholder: '0 3 * * *', hint: 'A cron line: minute, hour, day, month, day of the week' },
      { name: 'timezone', label: 'Time zone', value: Intl.DateTimeFormat().resolvedOptions().timeZone },
      { name: 'body', label: 'Body', kind: 'area', rows: 3, optional: true },
    ],
    way: 'It can be deleted, with the occurrence that waits.',
    verb: 'Make it',
  });
  if (!said) return;
  await attempt(async () => {
    await api.put(path(said.name.trim(), vhost), { queue: said.queue.trim(), cron: said.cron, timezone: said.timezone, message: { body: said.body } });
    toast(`${said.name} is there.`, { undo: async () => { await api.delete(path(said.name.trim(), vhost)); reload(); } });
    reload();
  });
}
