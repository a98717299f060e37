// What routes would do with a message. Nothing is published.
import { Problem, api, query as queryOf } from './api.js';
import { ProblemBox, Segments, Table } from './common.js';
import { Field } from './dialog.js';
import { plural } from './format.js';
import { html, useEffect, useRef, useState } from './lib.js';
import { isJson, parsed } from './manifest.js';
import { headers } from './publish.js';
import { href } from './route.js';
import { DRAWN_MAX, Level, Lives, ManifestProblem, ticked } from './routes-parts.js';

export function TryRoutes({ vhost, routes, draft, trial, setTrial }) {
  const [result, setResult] = useState(null);
  const [problem, setProblem] = useState(null);
  // The button is not disabled meanwhile: it would lose the keyboard.
  const busy = useRef(false);
  const region = useRef(null);
  // On a phone it is below what one sees.
  useEffect(() => {
    if ((result || problem) && region.current.getBoundingClientRect().top > innerHeight * 0.8) region.current.scrollIntoView();
  }, [result, problem]);
  const edited = trial.edited && draft !== null && isJson(draft);
  const change = (name) => (value) => setTrial((before) => ({ ...before, [name]: value }));
  const field = (name, label, more) => html`<${Field} field=${{ name: `try-${name}`, label, ...more }} value=${trial[name]} change=${change(name)} />`;

  const submit = async (event) => {
    event.preventDefault();
    if (busy.current) return;
    busy.current = true;
    setProblem(null);
    try {
      const ask = { path: trial.path, message: { body: trial.body } };
      if (trial.type) ask.message.content_type = trial.type;
      if (trial.headers.trim()) ask.message.headers = headers(trial.headers);
      if (edited) ask.manifest = manifest(draft);
      const said = await api.post(`/v1/routes/test${queryOf({ vhost })}`, ask);
      const known = edited ? ask.manifest.routes : Object.fromEntries(routes.map((route) => [route.name, route]));
      setResult({ ...said, known: known ?? {}, edited, path: trial.path });
    } catch (refused) {
      setResult(null);
      setProblem(refused);
    }
    busy.current = false;
  };

  return html`<div class="grid">
    <section class="sheet" aria-label="A message"><header><h2>A message</h2></header>
      <form class="inside form" onSubmit=${submit}>
        ${draft !== null && html`<div class="field"><span>Routes</span>${isJson(draft) ? html`<div><${Segments} label="Which routes" value=${edited} change=${change('edited')} options=${[{ value: false, label: 'as they are' }, { value: true, label: 'as edited' }]} /></div>` : html`<p class="hint">As they are. The edited manifest is TOML, and only JSON can be tried before it is set.</p>`}</div>`}
        ${field('path', 'Path', { placeholder: '/messages/modules/camera/outputs/alerts', hint: 'Where it comes from, with or without the first /' })}
        ${field('headers', 'Headers', { kind: 'area', rows: 3, optional: true, hint: 'One on each line: name: value. Conditions read them by name' })}
        ${field('body', 'Body', { kind: 'area', rows: 6, optional: true })}
        ${field('type', 'Content type', { optional: true, hint: 'Conditions read the body, as $body, if this is application/json' })}
        <div class="actions"><button type="submit" class="primary">Try it</button><span class="muted">Nothing is published.</span></div>
      </form></section>
    <section class="sheet" ref=${region} aria-label="What would be done"><header><h2>What would be done</h2></header>
      ${problem ? html`<div class="inside">${problem.code === 'manifest-invalid' ? html`<${ManifestProblem} problem=${problem} />` : html`<${ProblemBox} problem=${problem} />`}</div>` : result ? html`<${Result} vhost=${vhost} result=${result} />` : html`<p class="inside muted">Each route says whether it matches and why, and each copy where it would go. Nothing is published.</p>`}
    </section></div>`;
}

function manifest(draft) {
  const said = parsed(draft);
  if (said === null) throw new Problem(0, { title: 'the edited manifest is no JSON', hint: '“Check” in the editor shows the place' });
  return said;
}

const SAYS = {
  matches: { word: 'matches', mark: 'completed' },
  'does-not-match': { word: 'does not match', mark: '' },
  undefined: { word: 'undefined', mark: 's2' },
  'other-source': { word: 'from elsewhere', mark: '' },
};

function Result({ vhost, result }) {
  const [all, setAll] = useState(false);
  const here = result.routes.filter((route) => route.says !== 'other-source');
  const others = result.routes.length - here.length;
  const rows = all ? result.routes : here;
  const nobody = () => {
    if (result.routes.length === 0) return 'There are no routes.';
    return here.some((route) => route.says === 'undefined') ? 'No route matches; what is undefined does not count.' : 'No route matches.';
  };
  return html`<div class="result" role="status">
    <h3>${result.copies.length ? plural(result.copies.length, 'copy', 'copies') : 'Nobody would get it'}${result.fallback && html` <span class="badge">by fallback only</span>`}</h3>
    <p class="hint">Of a message from <code>${result.path}</code>, by the ${result.edited ? 'edited manifest' : 'routes there are'}. Nothing was published.</p></div>
    ${result.copies.length === 0
      ? html`<p class="inside">${nobody()} <span class="muted">It would be dropped, or refused if it is mandatory. A fallback route catches such messages.</span></p>`
      : html`<${Table} stack label="Copies" rows=${result.copies.slice(0, DRAWN_MAX)} id=${(row) => row.queue} columns=${[
          { label: 'Queue', show: (row) => html`<a class="wrap" href=${href('queue', vhost, row.queue)}>${row.queue}</a>` },
          { label: 'Route', show: (row) => row.route },
          { label: 'Priority', show: (row) => html`<${Level} of=${row.priority} />` },
          { label: 'Lives', show: (row) => html`<${Lives} secs=${row.ttl_secs} />` },
        ]} />`}
    ${result.routes.length > 0 && html`<div class="result"><h3>What each route says</h3></div>
      <ul class="verdicts">${rows.slice(0, DRAWN_MAX).map((route) => html`<${Verdict} key=${route.name} route=${route} result=${result} />`)}</ul>`}
    ${(rows.length > DRAWN_MAX || result.copies.length > DRAWN_MAX) && html`<p class="below">The first ${DRAWN_MAX} are shown.</p>`}
    ${others > 0 && html`<p class="below"><span>${plural(others, 'route is', 'routes are')} for messages from elsewhere.</span><button class="small" onClick=${() => setAll(!all)}>${all ? 'Hide' : 'Show'}</button></p>`}`;
}

function Verdict({ route, result }) {
  const { word, mark } = SAYS[route.says] ?? { word: route.says, mark: '' };
  return html`<li><span class="badge ${mark}">${word}</span><div><b>${route.name}</b>
    ${route.expression && html`<p><code class="route">${route.expression}</code></p>`}
    ${route.why && html`<p class="muted">${ticked(route.why)}</p>`}
    ${route.says === 'matches' && !result.copies.some((copy) => copy.route === route.name) && html`<p class="muted">It makes no copy: ${why(route, result)}.</p>`}
  </div></li>`;
}

// Why a route that matches makes no copy. What a whole deployment says of its routes is not looked for.
function why(route, result) {
  const known = result.known[route.name];
  if (known?.fallback && !result.fallback) return 'it is a fallback, and others match';
  return known ? 'its queue gets one already, by a route before it' : 'others go before it';
}
