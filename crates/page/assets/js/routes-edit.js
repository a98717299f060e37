// Setting the routes of a virtual host by their manifest: looked at first, asked about, and taken back where it was a mistake.
import { api, query as queryOf } from './api.js';
import { ProblemBox } from './common.js';
import { ask } from './dialog.js';
import { plural } from './format.js';
import { html, useRef, useState } from './lib.js';
import { EXAMPLE, isJson, mediaType, parsed, toml } from './manifest.js';
import { ManifestProblem } from './routes-parts.js';
import { toast } from './toast.js';
import { useAnswer } from './use.js';

const manifestPath = (vhost) => `/v1/routes/manifest${queryOf({ vhost })}`;
const inOneForm = (manifest) => JSON.stringify(manifest, null, 2);
const held = async (vhost) => inOneForm(await api.get(manifestPath(vhost)));
const put = (vhost, text, values = {}) => api.put(`/v1/routes${queryOf({ vhost, ...values })}`, text, mediaType(text));
const check = (vhost, text) => put(vhost, text, { check: true });

export function EditRoutes({ vhost, draft, setDraft, tryEdited, done }) {
  const answer = useAnswer(manifestPath(vhost), draft ? 0 : 5_000);
  const [found, setFound] = useState(null);
  // No button is disabled meanwhile: it would lose the keyboard, and the window could not give it back.
  const busy = useRef(false);
  if (!answer.data && !draft) return answer.problem ? html`<${ProblemBox} problem=${answer.problem} retry=${answer.reload} />` : html`<p class="muted">Looking …</p>`;
  const now = answer.data ? inOneForm(answer.data) : '';
  const text = draft?.text ?? now;
  const write = (next) => setDraft(next === now ? null : { text: next, isSet: false });
  // What the broker says to this very text.
  const look = async () => {
    const said = await check(vhost, text);
    setFound({ ...said, text });
    return said.changes;
  };
  const working = (work) => async () => {
    if (busy.current) return;
    busy.current = true;
    await work().catch((problem) => setFound({ problem, text }));
    busy.current = false;
  };
  const changed = (isSet) => {
    // JSON comes back in its one form; what somebody wrote in TOML stays as it is.
    setDraft((written) => (written && !isJson(written.text) ? { ...written, isSet } : isSet ? null : written));
    setFound(null);
    answer.reload();
    done();
  };
  const apply = async () => {
    const changes = await look();
    if (changes.length === 0) toast('Nothing is set: these are the routes there are.');
    else if (await setRoutes(vhost, text, changes, () => changed(false))) changed(true);
  };
  const nothing = text.trim() === '' || (!draft && Object.keys(answer.data.routes).length === 0);
  const table = isJson(text) && parsed(text);
  return html`<section class="sheet" aria-label="Manifest">
    <header><h2>Manifest <span class="badge">${isJson(text) ? 'JSON' : 'TOML'}</span>${draft && html` <span class=${draft.isSet ? 'badge completed' : 'badge s2'}>${draft.isSet ? 'set' : 'not set yet'}</span>`}</h2>
      <div class="actions">${nothing && html`<button class="small" onClick=${() => write(EXAMPLE)}>Load an example</button>`}
        ${table && html`<button class="small" onClick=${() => write(toml(table))}>As TOML</button>`}
        ${draft && html`<button class="small" onClick=${() => write(now)}>${draft.isSet ? 'As JSON' : 'Discard'}</button>`}</div></header>
    <div class="inside form">
      <textarea aria-label="Manifest" aria-describedby="manifest-hint" rows=${Math.max(14, Math.min(32, text.split('\n').length + 1))} spellcheck=${false} autocapitalize="off" value=${text} onInput=${(event) => write(event.target.value)}></textarea>
      <p class="hint" id="manifest-hint">All routes of the virtual host, as JSON or TOML. It holds whole or not at all; nothing is set before you say “Apply”.</p>
      ${found?.text === text && html`<${Found} ...${found} />`}
      <div class="actions"><button onClick=${working(look)}>Check</button>
        ${isJson(text) && html`<button onClick=${tryEdited}>Try a message</button>`}
        <button class="primary" onClick=${working(apply)}>Apply …</button></div>
    </div></section>`;
}

function Found({ problem, changes }) {
  if (problem?.code === 'manifest-invalid') return html`<${ManifestProblem} problem=${problem} />`;
  if (problem) return html`<${ProblemBox} problem=${{ message: told(problem), hint: problem.hint }} />`;
  return html`<div role="status">${changes.length === 0
    ? html`<p class="muted">It holds, and nothing changes: these are the routes there are.</p>`
    : html`<p><b>It holds.</b> ${plural(changes.length, 'change')}:</p><${Changes} of=${changes} />`}</div>`;
}

// A refusal that is about one route says which.
const told = (problem) => (problem.key ? `${problem.key}: ${problem.message}` : problem.message);

const MARKS = { '+': 'added', '-': 'removed', '~': 'changed' };

const Changes = ({ of }) => html`<ul class="changes" tabindex="0" aria-label="What changes">${of.map((change) => html`<li class=${MARKS[change[0]] ?? ''}>${change}</li>`)}</ul>`;

// Asks, sets, and offers a way back; answers whether they are set.
async function setRoutes(vhost, text, changes, undone) {
  // Routes into a queue that is gone by now would not be taken again.
  const noWayBack = await check(vhost, await held(vhost)).then(() => null, told);
  const gone = changes.some((change) => change.startsWith('-'));
  const sure = await ask({
    title: `Set these routes${vhost === '/' ? '' : ` in ${vhost}`}?`,
    wide: true,
    text: html`${plural(changes.length, 'change')}: <${Changes} of=${changes} /> Messages go by them at once${gone ? '; by the routes that go away, nobody gets a copy any more' : ''}. Queues of endpoints are made where they are not there. What is stored already stays as it is.`,
    way: noWayBack ? html`<b>Cannot be undone:</b> the routes there are would not be taken again (${noWayBack}).` : 'Can be undone.',
    verb: 'Apply',
    danger: gone,
  });
  if (!sure) return false;
  const before = await held(vhost);
  await put(vhost, text);
  const undo = async () => {
    await put(vhost, before);
    undone();
  };
  toast(`The routes are set: ${plural(changes.length, 'change')}.`, noWayBack ? {} : { undo });
  return true;
}
