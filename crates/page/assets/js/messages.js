// The messages of a queue, in the order in which they go out or in which they came.
import { api, enc, queuePath } from './api.js';
import { Empty, ProblemBox, Segments, When, holderName } from './common.js';
import { ask } from './dialog.js';
import { bytes, count, plural } from './format.js';
import { classes, html, useCallback, useEffect, useMemo, useRef, useState } from './lib.js';
import { Detail } from './message.js';
import { given, priorities } from './priority.js';
import { attempt, replay } from './queue-actions.js';
import { go, href, setQuery, useRoute } from './route.js';
import { toast } from './toast.js';
import { colours } from './urgency.js';
import { useSeen, useSettled } from './use.js';

const ROW = 44;
const PAGE = 200;

// Pages of messages, one after the other as somebody looks further down; the first is looked at again while it is the only one. One request looks at so many
// messages at most, so a page may have few of them or none: then the look goes on by itself, until it has as many as are wanted or is stopped.
function usePages(path, live) {
  const nothing = { path, messages: [], next: undefined, at: 0, looked: 0, of: 0, wanted: PAGE, requests: 0 };
  const [state, set] = useState(nothing);
  const asking = useRef(null);
  const current = state.path === path ? state : nothing;
  const looking = Boolean(current.next) && current.messages.length < current.wanted && !current.stopped && !current.problem;
  const load = useCallback(
    async (cursor) => {
      if (cursor && asking.current === path + cursor) return;
      asking.current = path + (cursor ?? '');
      try {
        const page = await api.get(cursor ? `${path}&cursor=${enc(cursor)}` : path);
        set((before) => {
          if (cursor && (before.path !== path || before.next !== cursor)) return before;
          const kept = cursor ? before : { ...nothing, path };
          // A message that moved meanwhile may come again.
          const known = new Set(kept.messages.map((one) => one.seq));
          const messages = [...kept.messages, ...page.messages.filter((one) => !known.has(one.seq))];
          const looked = kept.looked + page.looked_at;
          return { ...kept, messages, next: page.next_cursor, at: Date.now(), looked, of: Math.max(page.in_queue, looked), requests: kept.requests + 1, early: Boolean(page.next_cursor) && page.messages.length < PAGE };
        });
      } catch (problem) {
        if (problem.name !== 'AbortError') set((before) => ({ ...before, path, problem, messages: before.path === path ? before.messages : [] }));
      }
      asking.current = null;
    },
    [path],
  );
  useEffect(() => {
    load();
  }, [load]);
  useEffect(() => {
    if (looking) load(current.next);
  }, [looking, current.next, load]);
  // A look of many requests is not made again every two seconds.
  const again = live && !looking && current.requests < 2;
  useEffect(() => {
    if (!again) return undefined;
    const timer = setInterval(() => load(), 2_000);
    return () => clearInterval(timer);
  }, [again, load]);
  const change = (what) => set((before) => (before.path === path ? { ...before, ...what } : before));
  return {
    ...current,
    looking,
    still: current.requests > 1,
    more: () => current.next && !looking && !current.stopped && change({ wanted: current.messages.length + PAGE }),
    stop: () => change({ stopped: true }),
    goOn: () => change({ stopped: false, wanted: current.messages.length + PAGE }),
    reload: () => load(),
  };
}

export function Messages({ vhost, name, look, settings, may, item }) {
  const { query } = useRoute();
  const status = query.status ?? 'ready';
  const order = query.order ?? 'dispatch';
  const [typed, setTyped] = useState({ key: query.key ?? '', user: query.user ?? '', header: query.header ?? '' });
  const filters = useSettled(typed);
  useEffect(() => {
    if ((query.key ?? '') !== filters.key || (query.user ?? '') !== filters.user || (query.header ?? '') !== filters.header) setQuery(filters);
  }, [filters]);
  const [headerName, headerValue] = (query.header ?? '').split(/[=:](.*)/s).map((part) => part?.trim());
  const asked = {
    status: status === 'all' ? '' : status,
    order,
    priority: query.priority,
    key: query.key,
    user_id: query.user,
    limit: PAGE,
    body: 'none',
    ...(headerName && headerValue !== undefined ? { [`header.${headerName}`]: headerValue } : {}),
  };
  const path = queuePath(vhost, name, '/messages', asked);

  const [top, setTop] = useState(true);
  const [chosen, choose] = useState(new Set());
  const [at, setAt] = useState(0);
  const seen = useSeen();
  const [further, setFurther] = useState(false);
  const pages = usePages(path, seen && !further);
  useEffect(() => setFurther(pages.messages.length > PAGE || !top), [pages.messages.length, top]);
  useEffect(() => {
    choose(new Set());
    setAt(0);
  }, [path]);

  const lanes = useMemo(() => (look ? colours(look) : new Map()), [look?.lanes.map((lane) => lane.lane).join()]);
  const sums = (of) => look?.lanes.reduce((all, lane) => all + lane[of], 0) ?? 0;
  const numbers = { ready: sums('ready'), leased: sums('leased'), delayed: sums('delayed'), dead: sums('dead') };
  const open = (message) => go(href('queue', vhost, name, 'messages', message.id) + location.hash.replace(/^[^?]*/, ''));
  const close = () => go(href('queue', vhost, name, 'messages') + location.hash.replace(/^[^?]*/, ''));
  const toggle = (seq) => {
    const next = new Set(chosen);
    if (!next.delete(seq)) next.add(seq);
    choose(next);
  };
  const keys = (event) => {
    if (event.target.closest('input, button')) return;
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 }[event.key];
    const message = pages.messages[at];
    if (step) setAt(Math.max(0, Math.min(pages.messages.length - 1, at + step)));
    else if (event.key === 'Enter' && message) open(message);
    else if (event.key === 'x' && message) toggle(message.seq);
    else if (event.key === 'Escape') close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const filtered = Boolean(query.priority || query.key || query.user || query.header);
  const refresh = () => {
    choose(new Set());
    pages.reload();
  };
  const acting = { vhost, name, settings, may, done: refresh };
  const selected = pages.messages.filter((one) => chosen.has(one.seq));

  return html`<div class=${classes('work', item && 'open')}>
    <section class="sheet" aria-label="Messages">
      <header>
        <${Segments} label="Status" value=${status} change=${(value) => setQuery({ status: value })} options=${[
          { value: 'ready', label: 'Waiting', count: count(numbers.ready) },
          { value: 'leased', label: 'Running', count: count(numbers.leased) },
          { value: 'delayed', label: 'Delayed', count: count(numbers.delayed) },
          { value: 'dead', label: 'Dead', count: count(numbers.dead) },
          { value: 'all', label: 'All' },
        ]} />
        <${Segments} label="Order" value=${order} change=${(value) => setQuery({ order: value })} options=${[
          { value: 'dispatch', label: 'As they go out' },
          { value: 'published', label: 'As they came' },
          { value: 'newest', label: 'Newest first' },
        ]} />
      </header>
      <header>
        <div class="filters">
          <select aria-label="Priority" value=${query.priority ?? ''} onChange=${(event) => setQuery({ priority: event.target.value })}>
            <option value="">Any priority</option>
            ${priorities(settings.scheme).map((one) => html`<option value=${String(one.value)}>${one.label}</option>`)}
          </select>
          <input type="search" aria-label="Key" placeholder="Key ( / )" value=${typed.key} onInput=${(event) => setTyped({ ...typed, key: event.target.value })} />
          <input aria-label="User" placeholder="User" value=${typed.user} onInput=${(event) => setTyped({ ...typed, user: event.target.value })} />
          <input aria-label="Header" placeholder="Header: value" value=${typed.header} onInput=${(event) => setTyped({ ...typed, header: event.target.value })} />
          ${filtered && html`<button class="small" onClick=${() => { setTyped({ key: '', user: '', header: '' }); setQuery({ priority: '', key: '', user: '', header: '' }); }}>Clear</button>`}
        </div>
        <${AllActions} ...${acting} status=${status} query=${query} filtered=${filtered} number=${numbers[status]} />
      </header>
      ${selected.length > 0 && html`<${ChosenActions} ...${acting} selected=${selected} status=${status} clear=${() => choose(new Set())} />`}
      ${pages.looking && pages.early && html`<${HowFar} ...${pages}><button class="small" onClick=${pages.stop}>Stop</button></${HowFar}>`}
      ${pages.stopped && html`<${HowFar} ...${pages} stopped><button class="small" onClick=${pages.goOn}>Go on</button></${HowFar}>`}
      <div class="message-head" aria-hidden="true"><span></span><span>Lane</span><span>Id</span><span class="narrow-out">Key</span><span>${status === 'leased' ? 'Deadline' : status === 'delayed' ? 'Due' : status === 'dead' ? 'Died' : 'Published'}</span><span class="phone-out">${status === 'dead' ? 'Why' : 'Holder, attempts'}</span><span class="number narrow-out">Size</span></div>
      ${pages.problem
        ? html`<${ProblemBox} problem=${pages.problem} retry=${pages.reload} />`
        : pages.messages.length === 0
          ? html`<${Nothing} status=${status} filtered=${filtered} loaded=${pages.at > 0 && !pages.looking} stopped=${pages.stopped} name=${name} />`
          : html`<${List} messages=${pages.messages} more=${pages.more} at=${at} setTop=${setTop} onKeyDown=${keys} row=${(message, index) => html`<${Row}
              key=${message.seq} message=${message} at=${index === at} lane=${lanes.get(message.lane)} open=${() => { setAt(index); open(message); }} chosen=${chosen.has(message.seq)} toggle=${() => toggle(message.seq)} top=${index * ROW} current=${message.id === item} />`} />`}
      <div class="below"><span>${count(pages.messages.length)} shown${pages.next && !pages.looking && !pages.stopped ? ', more below' : ''}</span>
        ${further || pages.still ? html`<span>Standing still while you look. <button class="small" onClick=${() => { document.querySelector('.messages')?.scrollTo({ top: 0 }); refresh(); }}>To the newest state</button></span>` : html`<span>Looked at every two seconds</span>`}</div>
    </section>
    ${item && html`<${Detail} key=${item} ...${acting} id=${item} lane=${lanes} close=${close} />`}
  </div>`;
}

// How far a look is that takes more than one request.
function HowFar({ looked, of, messages, stopped, children }) {
  return html`<div class="how-far"><progress aria-label="Looked at" max=${of || 1} value=${looked}></progress>
    <span>${stopped ? 'Stopped: looked' : 'Looked'} at ${count(looked)} of ${count(of)} messages, ${count(messages.length)} found</span>${children}</div>`;
}

// Only what is in sight is drawn.
function List({ messages, row, more, at, setTop, onKeyDown }) {
  const ref = useRef(null);
  const [place, setPlace] = useState({ from: 0, to: 40 });
  const look = () => {
    const { scrollTop, clientHeight } = ref.current;
    const from = Math.max(0, Math.floor(scrollTop / ROW) - 10);
    const to = Math.ceil((scrollTop + clientHeight) / ROW) + 10;
    setPlace((before) => (before.from === from && before.to === to ? before : { from, to }));
    setTop(scrollTop < ROW);
    if (to >= messages.length - 50) more();
  };
  useEffect(look, [messages.length]);
  useEffect(() => {
    const { scrollTop, clientHeight } = ref.current;
    if (at * ROW < scrollTop) ref.current.scrollTop = at * ROW;
    else if ((at + 1) * ROW > scrollTop + clientHeight) ref.current.scrollTop = (at + 1) * ROW - clientHeight;
  }, [at]);
  return html`<div class="messages" ref=${ref} onScroll=${look} tabindex="0" role="group" aria-label=${`${messages.length} messages; j and k move, Enter opens, x selects`} onKeyDown=${onKeyDown}>
    <div style=${{ height: `${messages.length * ROW}px`, position: 'relative' }}>
      ${messages.slice(place.from, place.to).map((message, index) => row(message, place.from + index))}
    </div>
  </div>`;
}

function Row({ message, at, lane, open, chosen, toggle, top, current }) {
  const { id, status, dead_letter: death, holder } = message;
  const when = { leased: message.deadline, delayed: message.due_at, dead: death?.at }[status] ?? message.published_at;
  const how = status === 'dead' ? death?.reason : [holderName(holder), message.delivery_count > 1 && `${message.delivery_count} attempts`].filter(Boolean).join(' · ');
  return html`<div class=${classes('message-row', at && 'at', (chosen || current) && 'chosen')} style=${{ top: `${top}px` }} onClick=${open}>
    <span onClick=${(event) => event.stopPropagation()}><input type="checkbox" aria-label=${`Select ${id}`} checked=${chosen} onChange=${toggle} /></span>
    <span class="lane"><i class="dot" style=${{ '--lane': lane ?? 'var(--muted)' }}></i>${message.lane}</span>
    <a class="mono" href=${`#`} onClick=${(event) => { event.preventDefault(); event.stopPropagation(); open(); }}>${id}</a>
    <span class="narrow-out muted">${message.key ?? ''}</span>
    <span><${When} at=${when} /></span>
    <span class="phone-out muted">${message.cancel_asked ? 'is to be cancelled' : how}</span>
    <span class="narrow-out number muted">${bytes(message.bytes)}</span>
  </div>`;
}

function Nothing({ status, filtered, loaded, stopped, name }) {
  if (!loaded) return html`<div class="empty" aria-busy="true">Looking …</div>`;
  if (stopped) return html`<${Empty} title="Nothing found so far"><p>The look was stopped before its end.</p></${Empty}>`;
  if (filtered) return html`<${Empty} title="Nothing matches"><p>No message is so. Take a filter away, or look under another status.</p></${Empty}>`;
  const say = {
    ready: ['Nothing waits', html`<p>What is published is here until somebody takes it.</p><pre>overtake publish ${name} hello --priority high</pre>`],
    leased: ['Nobody works on anything', html`<p>What a consumer holds is here, with its deadline.</p><pre>overtake work ${name} -- ./run</pre>`],
    delayed: ['Nothing is delayed', html`<p>Messages published for later, and those that wait after a failure, are here.</p>`],
    dead: ['No dead letters', html`<p>What fails too often, expires, or is rejected ends here, to be looked at and replayed.</p>`],
    all: ['The queue is empty', html`<p>Publish something: press <kbd>p</kbd>.</p>`],
  }[status];
  return html`<${Empty} title=${say[0]}>${say[1]}</${Empty}>`;
}

// What can be done to all that match.
function AllActions({ vhost, name, settings, may, status, query, filtered, number, done }) {
  if (!number) return null;
  if (query.header && !/[=:]./.test(query.header)) return html`<p class="muted">Give the header its value to change all that match.</p>`;
  const [headerName, headerValue] = (query.header ?? '').split(/[=:](.*)/s).map((part) => part?.trim());
  const filter = {
    ...(status === 'all' ? {} : { status }),
    ...(query.priority ? { priority: given(query.priority) } : {}),
    ...(query.key ? { key: query.key } : {}),
    ...(query.user ? { user_id: query.user } : {}),
    ...(headerName && headerValue !== undefined ? { headers: { [headerName]: headerValue } } : {}),
  };
  const which = filtered ? `the ${count(number)} that match` : `all ${count(number)}`;
  const select = Object.keys(filter).length ? { filter } : { all: true };
  const movable = status === 'ready' || status === 'delayed';
  const raise = async () => {
    const said = await ask({
      title: `Another priority for ${which}?`,
      text: 'They keep their age: among those of the new priority they stand where they would have stood from the start.',
      fields: [{ name: 'priority', label: 'Priority', kind: 'select', value: String(priorities(settings.scheme)[0].value), options: priorities(settings.scheme) }],
      way: 'There is no way back for all at once: what had which priority is not kept together. Give single messages theirs again.',
      verb: 'Change',
    });
    if (!said) return;
    await attempt(async () => {
      const { count: changed } = await api.post(queuePath(vhost, name, '/reprioritise'), { ...select, expect: number, priority: given(said.priority) });
      toast(`${plural(changed, 'message')} now ${said.priority}.`);
      done();
    });
  };
  const cancel = async () => {
    const sure = await ask({
      title: `Cancel ${which}?`,
      text: status === 'leased' ? 'Whoever leased one over HTTP is told, and ends. What a consumer over AMQP holds is removed at once: the consumer is not told, may still be at work on it, and gets no other message in its place until it settles it.' : 'They end at once, as cancelled.',
      way: settings.history ? `They are in ${settings.history} then, and can be retried from there.` : 'Nobody can take this back: the queue has no history.',
      verb: 'Cancel them',
      danger: true,
    });
    if (!sure) return;
    await attempt(async () => {
      const { count: ended } = await api.post(queuePath(vhost, name, '/cancel'), { ...select, expect: number });
      toast(`${plural(ended, 'message')} cancelled.`);
      done();
    });
  };
  return html`<div class="actions">
    ${movable && may.read && may.write && html`<button class="small" onClick=${raise}>Reprioritise ${which}</button>`}
    ${status !== 'dead' && status !== 'all' && may.read && html`<button class="small" onClick=${cancel}>Cancel ${which}</button>`}
    ${status === 'dead' && may.read && may.write && html`<button class="small primary" onClick=${() => replay(vhost, name, filtered ? { filter: { ...filter, status: undefined } } : { all: true }, number, priorities(settings.scheme), done)}>Replay ${which}</button>`}
  </div>`;
}

// What can be done to those that are chosen, one after the other; what fails is said.
function ChosenActions({ vhost, name, settings, may, selected, status, clear, done }) {
  const one = (message, below = '') => queuePath(vhost, name, `/messages/${enc(message.id)}${below}`);
  const each = async (work, said, undo) => {
    const problems = [];
    const did = [];
    for (const message of selected) {
      try {
        await work(message);
        did.push(message);
      } catch (problem) {
        problems.push(problem);
      }
    }
    if (did.length) toast(`${plural(did.length, 'message')} ${said}.`, undo ? { undo: async () => { for (const message of did) await undo(message); done(); } } : {});
    if (problems.length) attempt(() => Promise.reject(problems[0]));
    done();
  };
  const raise = async () => {
    const said = await ask({
      title: `Another priority for ${plural(selected.length, 'message')}?`,
      text: 'They keep their age.',
      fields: [{ name: 'priority', label: 'Priority', kind: 'select', value: String(priorities(settings.scheme)[0].value), options: priorities(settings.scheme) }],
      way: 'Can be undone as long as they wait.',
      verb: 'Change',
    });
    if (!said) return;
    const to = given(said.priority);
    await each((message) => api.put(one(message, '/priority'), { priority: to }), `now ${to}`, (message) => api.put(one(message, '/priority'), { priority: message.priority }));
  };
  const remove = async () => {
    const sure = await ask({ title: `Remove ${plural(selected.length, 'message')}?`, text: 'They will be gone, also for who works on them.', way: html`<b>Nobody can take this back.</b>`, verb: 'Remove', danger: true });
    if (sure) await each((message) => api.delete(one(message)), 'removed');
  };
  const cancel = async () => {
    const sure = await ask({ title: `Cancel ${plural(selected.length, 'message')}?`, text: 'What waits ends at once; who works on one is told, and ends.', way: settings.history ? `They are in ${settings.history} then, and can be retried.` : 'Nobody can take this back: the queue has no history.', verb: 'Cancel them', danger: true });
    if (sure) await each((message) => api.post(one(message, '/cancel')), 'cancelled');
  };
  const back = async () => {
    const said = await ask({ title: `Replay ${plural(selected.length, 'message')}?`, text: 'They go back to where they died, and are tried again.', verb: 'Replay' });
    if (said) await each((message) => api.post(queuePath(vhost, name, '/replay'), { id: message.id }), 'replayed');
  };
  const movable = status === 'ready' || status === 'delayed';
  return html`<div class="bulk"><b>${selected.length} selected</b>
    ${movable && may.read && may.write && html`<button class="small" onClick=${raise}>Reprioritise</button>`}
    ${status === 'dead' && may.read && may.write && html`<button class="small" onClick=${back}>Replay</button>`}
    ${status !== 'dead' && may.read && html`<button class="small" onClick=${cancel}>Cancel</button>`}
    ${may.read && html`<button class="small" onClick=${remove}>Remove</button>`}
    <button class="small quiet" onClick=${clear}>Select none</button></div>`;
}
