// How messages find their queues: exchanges and bindings, as a picture.
import { enc, query as queryOf } from './api.js';
import { Empty, ProblemBox, Table, Title } from './common.js';
import { count } from './format.js';
import { html, useState } from './lib.js';
import { href, setQuery } from './route.js';
import { useAnswer } from './use.js';

const WIDTH = 200;
const HEIGHT = 46;
const GAP = 18;
// Exchanges that are drawn: each is asked for its bindings.
const DRAWN_MAX = 60;

export function Topology({ query }) {
  const vhost = query.vhost ?? '/';
  const vhosts = useAnswer('/v1/vhosts').data?.vhosts ?? [];
  const { data, problem, reload } = useAnswer(`/v1/exchanges${queryOf({ vhost })}`, 10_000);
  const used = (data?.exchanges ?? []).filter((one) => one.bindings > 0 && one.name !== '');
  return html`<main id="main" tabindex="-1"><${Title} sub=${html`Which exchange gives what to which queue. Conditions that decide over messages by their path are under <a href=${href('routes') + queryOf({ vhost: query.vhost })}>Routes</a>.`} actions=${vhosts.length > 1 && html`<select aria-label="Virtual host" value=${vhost} onChange=${(event) => setQuery({ vhost: event.target.value })}>${vhosts.map((one) => html`<option value=${one.name}>${one.name}</option>`)}</select>`}>Routing</${Title}>
    ${problem && html`<${ProblemBox} problem=${problem} retry=${reload} />`}
    ${data && html`<section class="sheet"><header><h2>Bindings</h2></header>${used.length === 0 ? html`<${Empty} title="Nothing is bound"><p>Messages published to a queue by its name need no binding. An exchange shares them out:</p><pre>overtake exchange declare orders --kind topic
overtake exchange bind orders jobs --key 'order.*'</pre></${Empty}>` : html`<${Picture} key=${used.map((one) => one.name).join()} vhost=${vhost} exchanges=${used} all=${data.exchanges} />`}</section>
    <section class="sheet"><header><h2>Exchanges <span class="count">${count(data.exchanges.length)}</span></h2></header><${Table} label="Exchanges" rows=${data.exchanges} id=${(row) => row.name} columns=${[
      { label: 'Exchange', show: (row) => html`<b>${row.name || '(default)'}</b>` },
      { label: 'Kind', show: (row) => row.kind + (row.delayed ? ', delayed' : '') },
      { label: 'Bindings', number: true, show: (row) => count(row.bindings) },
      { label: 'Lasts', show: (row) => (row.durable ? 'yes' : 'until a restart') },
      { label: 'Goes by itself', show: (row) => (row.auto_delete ? 'with its last binding' : 'no') },
      { label: 'Else to', show: (row) => row.effective_alternate ?? row.alternate ?? html`<span class="muted">nobody</span>` },
    ]} /></section>`}</main>`;
}

// The bindings of each are asked for at once, and drawn as answers come.
function Picture({ vhost, exchanges, all }) {
  const [chosen, choose] = useState(null);
  const answers = exchanges.slice(0, DRAWN_MAX).map((one) => ({ one, answer: useAnswer(`/v1/exchanges/${enc(one.name)}/bindings${queryOf({ vhost })}`) }));
  const edges = new Map();
  for (const { one, answer } of answers) {
    for (const binding of answer.data?.bindings ?? []) {
      const to = binding.queue ? `q:${binding.queue}` : `x:${binding.to_exchange}`;
      const key = `x:${one.name}\n${to}`;
      const words = binding.headers && Object.keys(binding.headers).length ? Object.entries(binding.headers).map(([name, value]) => `${name}=${value}`).join(', ') : binding.routing_key;
      edges.set(key, { from: `x:${one.name}`, to, keys: [...(edges.get(key)?.keys ?? []), words ?? ''] });
    }
  }
  const list = [...edges.values()];
  const kinds = new Map(all.map((one) => [one.name, one.kind]));
  // Exchanges that get from others stand to the right of them.
  const depth = new Map(exchanges.map((one) => [`x:${one.name}`, 0]));
  for (let round = 0; round < 6; round += 1) {
    for (const edge of list) if (edge.to.startsWith('x:') && edge.to !== edge.from) depth.set(edge.to, Math.max(depth.get(edge.to) ?? 0, Math.min((depth.get(edge.from) ?? 0) + 1, 5)));
  }
  const last = Math.max(0, ...depth.values()) + 1;
  for (const edge of list) if (edge.to.startsWith('q:')) depth.set(edge.to, last);
  const columns = Array.from({ length: last + 1 }, (_, at) => [...depth].filter(([, of]) => of === at).map(([id]) => id).sort());
  const place = new Map();
  const step = 330;
  const tallest = Math.max(...columns.map((column) => column.length));
  columns.forEach((column, at) => column.forEach((id, row) => place.set(id, { x: at * step, y: (row + (tallest - column.length) / 2) * (HEIGHT + GAP) })));
  const near = (edge) => !chosen || edge.from === chosen || edge.to === chosen;
  const lit = new Set(chosen ? list.filter(near).flatMap((edge) => [edge.from, edge.to]) : []);
  const [width, height] = [last * step + WIDTH + 4, tallest * (HEIGHT + GAP) + 4];
  return html`<div class="picture"><svg width=${width} height=${height} viewBox="-2 -2 ${width} ${height}" role="group" aria-label=${`${exchanges.length} exchanges and ${columns[last].length} queues`}>
    ${list.map((edge) => {
      const [from, to] = [place.get(edge.from), place.get(edge.to)];
      if (!from || !to) return null;
      const [x1, y1, x2, y2] = [from.x + WIDTH, from.y + HEIGHT / 2, to.x, to.y + HEIGHT / 2];
      const words = edge.keys.filter(Boolean);
      const text = words.length > 1 ? `${words[0]} +${words.length - 1}` : (words[0] ?? '');
      return html`<g class=${near(edge) ? '' : 'dim'}><path class="edge" d=${`M${x1},${y1} C${x1 + 60},${y1} ${x2 - 60},${y2} ${x2},${y2}`}><title>${edge.keys.join('\n')}</title></path>
        ${text && html`<text class="edge-key" x=${x1 + 65} y=${y1 + (y2 - y1) * 0.12 - 5} text-anchor="middle">${text}</text>`}</g>`;
    })}
    ${[...place].map(([id, { x, y }]) => {
      const queue = id.startsWith('q:');
      const name = id.slice(2);
      const say = `${queue ? 'queue' : `${kinds.get(name) ?? ''} exchange`} ${name}`;
      return html`<g class="node ${queue ? 'queue' : 'exchange'} ${chosen && !lit.has(id) ? 'dim' : ''}" transform=${`translate(${x},${y})`} tabindex="0" role="button" aria-label=${say} aria-pressed=${chosen === id}
        onClick=${() => (queue && chosen === id ? (location.hash = href('queue', vhost, name)) : choose(chosen === id ? null : id))}
        onKeyDown=${(event) => event.key === 'Enter' && choose(chosen === id ? null : id)}>
        <title>${say}</title><rect width=${WIDTH} height=${HEIGHT} rx=${queue ? 8 : 22} /><text x="16" y="20">${name.length > 25 ? `${name.slice(0, 24)}…` : name}</text><text class="kind" x="16" y="36">${queue ? 'queue' : kinds.get(name)}</text></g>`;
    })}
  </svg><p class="hint">Choose one to see what it is bound to; choose a queue twice to go there.${exchanges.length > DRAWN_MAX ? ` The first ${DRAWN_MAX} of ${exchanges.length} exchanges are drawn; all are in the list below.` : ''}</p></div>`;
}
