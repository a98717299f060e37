// Who is connected: connections, their channels, their consumers with their windows.
import { api, enc } from './api.js';
import { Empty, Facts, ProblemBox, Table, Tabs, Title, When } from './common.js';
import { ask } from './dialog.js';
import { bytes, count, plural } from './format.js';
import { html } from './lib.js';
import { attempt } from './queue-actions.js';
import { go, href } from './route.js';
import { toast } from './toast.js';
import { useAnswer } from './use.js';

export function Clients({ parts }) {
  const which = ['channels', 'consumers'].includes(parts[1]) ? parts[1] : 'connections';
  const one = parts[1] && which === 'connections' ? parts[1] : null;
  const { data, problem, reload } = useAnswer(`/api/${which}`, 2_000);
  const views = { connections: Connections, channels: Channels, consumers: Consumers };
  if (one) return html`<${Connection} name=${one} all=${data} reload=${reload} />`;
  return html`<main id="main" tabindex="-1"><${Title} sub="Over AMQP. Programs that ask over HTTP come and go with each request">Clients</${Title}>
    <${Tabs} label="Clients" current=${which} tabs=${Object.keys(views).map((name) => ({ name, label: name[0].toUpperCase() + name.slice(1), href: name === 'connections' ? href('clients') : href('clients', name) }))} />
    <section class="sheet">${problem ? html`<${ProblemBox} problem=${problem} retry=${reload} />` : data?.length === 0 ? html`<${Empty} title=${`No ${which}`}><p>Any AMQP 0-9-1 client connects as to RabbitMQ: port 5672, the same users and queues.</p></${Empty}>` : data && html`<${views[which]} rows=${data} />`}</section></main>`;
}

const called = (row) => row.user_provided_name || row.client_properties?.product || '';
const link = (name) => html`<a class="mono" href=${href('clients', name)}>${name}</a>`;

const Connections = ({ rows }) => html`<${Table} label="Connections" rows=${rows} id=${(row) => row.name} onRow=${(row) => go(href('clients', row.name))} columns=${[
  { label: 'Connection', show: (row) => html`${link(row.name)}<br /><span class="muted">${called(row)}</span>` },
  { label: 'User', show: (row) => row.user },
  { label: 'Virtual host', show: (row) => row.vhost },
  { label: 'State', show: (row) => html`<span class="badge ${row.state === 'running' ? 'running' : 's2'}">${row.state}</span>` },
  { label: 'TLS', show: (row) => (row.ssl ? 'yes' : 'no') },
  { label: 'Channels', number: true, show: (row) => count(row.channels) },
  { label: 'Received', number: true, show: (row) => bytes(row.recv_oct) },
  { label: 'Sent', number: true, show: (row) => bytes(row.send_oct) },
  { label: 'Since', show: (row) => html`<${When} at=${row.connected_at} />` },
]} />`;

const Channels = ({ rows }) => html`<${Table} label="Channels" rows=${rows} id=${(row) => row.name} columns=${[
  { label: 'Channel', show: (row) => html`<span class="mono">${row.name}</span>` },
  { label: 'User', show: (row) => row.user },
  { label: 'Mode', show: (row) => [row.confirm && 'confirms', row.transactional && 'transactions'].filter(Boolean).join(', ') || 'plain' },
  { label: 'Consumers', number: true, show: (row) => count(row.consumer_count) },
  { label: 'Window', number: true, show: (row) => (row.prefetch_count || row.global_prefetch_count ? count(row.prefetch_count || row.global_prefetch_count) : 'none') },
  { label: 'Unacknowledged', number: true, show: (row) => count(row.messages_unacknowledged) },
  { label: 'Unconfirmed', number: true, show: (row) => count(row.messages_unconfirmed) },
  { label: 'State', show: (row) => row.state },
]} />`;

// Of one queue it need not say which.
export const Consumers = ({ rows, ofQueue }) => html`<${Table} label="Consumers" rows=${rows} id=${(row) => row.channel_details.name + row.consumer_tag} columns=${[
  { label: 'Consumer', show: (row) => html`<span class="mono">${row.consumer_tag}</span>` },
  ...(ofQueue ? [] : [{ label: 'Queue', show: (row) => html`<a href=${href('queue', row.queue.vhost, row.queue.name)}>${row.queue.name}</a>` }]),
  { label: 'Connection', show: (row) => link(row.channel_details.connection_name) },
  { label: 'User', show: (row) => row.channel_details.user },
  { label: 'Window', number: true, show: (row) => (row.prefetch_count ? count(row.prefetch_count) : 'none') },
  { label: 'Unacknowledged', number: true, show: (row) => (row.ack_required ? count(row.messages_unacknowledged) : '') },
  { label: 'Acknowledges', show: (row) => (row.ack_required ? 'yes' : 'no') },
  { label: 'State', show: (row) => row.activity_status },
]} />`;

function Connection({ name, all, reload }) {
  const one = all?.find((row) => row.name === name);
  const channels = useAnswer(`/api/connections/${enc(name)}/channels`, 2_000).data ?? [];
  const consumers = (useAnswer('/api/consumers', 2_000).data ?? []).filter((row) => row.channel_details.connection_name === name);
  const close = async () => {
    const said = await ask({ title: 'Close this connection?', text: `${plural(consumers.length, 'consumer')} will end; what they hold is put back and given to others. Most clients connect again by themselves.`, fields: [{ name: 'why', label: 'Why, for the client', value: 'closed by the operator', optional: true }], way: 'Nobody can take this back.', verb: 'Close it', danger: true });
    if (!said) return;
    await attempt(async () => {
      await api.delete(`/api/connections/${enc(name)}`);
      toast('The connection is closed.');
      reload();
      go(href('clients'));
    });
  };
  if (!one) return html`<main id="main" tabindex="-1"><${Title}>${name}</${Title}><p>${all ? 'There is no such connection any more.' : 'Looking …'} <a href=${href('clients')}>To all connections</a></p></main>`;
  return html`<main id="main" tabindex="-1"><div><p class="crumb"><a href=${href('clients')}>Connections</a></p><${Title} sub=${called(one)} actions=${html`<button onClick=${close}>Close it …</button>`}>${name}</${Title}></div>
    <section class="sheet"><div class="inside"><${Facts} of=${[
      ['User', one.user], ['Virtual host', one.vhost], ['State', one.state], ['Protocol', one.protocol], ['TLS', one.ssl ? 'yes' : 'no'], ['Since', html`<${When} at=${one.connected_at} />`],
      ['Received', bytes(one.recv_oct)], ['Sent', bytes(one.send_oct)], ['Heartbeat', `${one.timeout} s`], ['Client', `${one.client_properties?.product ?? ''} ${one.client_properties?.version ?? ''}`],
    ]} /></div></section>
    <section class="sheet"><header><h2>Channels</h2></header>${channels.length ? html`<${Channels} rows=${channels} />` : html`<p class="inside muted">none</p>`}</section>
    <section class="sheet"><header><h2>Consumers</h2></header>${consumers.length ? html`<${Consumers} rows=${consumers} />` : html`<p class="inside muted">none</p>`}</section></main>`;
}
