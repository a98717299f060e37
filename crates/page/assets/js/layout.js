// What surrounds every view: where one can go, how the broker is, who one is.
import { Admin } from './admin.js';
import { Clients } from './clients.js';
import { bytes } from './format.js';
import { Endpoints } from './endpoints.js';
import { Executions } from './executions.js';
import { html, useEffect, useRef } from './lib.js';
import { Overview } from './overview.js';
import { openPublish } from './publish.js';
import { Queue } from './queue.js';
import { href, useRoute } from './route.js';
import { Routes } from './routes.js';
import { Schedules } from './schedules.js';
import { Topology } from './topology.js';
import { useEvents } from './use.js';

const VIEWS = [
  { name: '', label: 'Overview', icon: 'M3 13h6V3H3zm8 8h6V3h-6zM3 21h6v-6H3zM19 21h2V3h-2z', view: Overview },
  { name: 'executions', label: 'Executions', icon: 'M6 4l14 8-14 8z', view: Executions, tag: 'administrator' },
  { name: 'schedules', label: 'Schedules', icon: 'M12 3a9 9 0 1 0 .01 0zM11 7h2v5.4l3.6 2.1-1 1.7L11 13.6z', view: Schedules },
  { name: 'clients', label: 'Clients', icon: 'M4 5h16v9H4zm-1 11h18v3H3z', view: Clients, tag: 'management' },
  { name: 'topology', label: 'Routing', icon: 'M5 4h5v5H8v2h8v-2h-2V4h5v5h-2v4h-4v2h2v5h-5v-5h2v-2H6V9H5z', view: Topology },
  { name: 'routes', label: 'Routes', icon: 'M2 11h6l5-6h3V2l6 4-6 4V7h-2l-4 5 4 5h2v-3l6 4-6 4v-3h-3l-5-6H2z', view: Routes },
  { name: 'endpoints', label: 'Endpoints', icon: 'M3 5h8v3H6v8h5v3H3zM12 11h5V7l5 5-5 5v-4h-5z', view: Endpoints },
  { name: 'admin', label: 'Admin', icon: 'M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6z', view: Admin },
];

// Whether somebody has a tag, or one that covers it.
export const hasTag = (who, tag) => {
  const covers = { management: ['management', 'policymaker', 'monitoring', 'administrator'], monitoring: ['monitoring', 'administrator'], policymaker: ['policymaker', 'administrator'], administrator: ['administrator'] };
  return covers[tag].some((one) => who.tags.includes(one));
};

export function Layout({ who, lost, logOut, theme, setTheme }) {
  const { parts, query } = useRoute();
  const overview = parts.length === 0;
  const params = new URLSearchParams();
  if (overview) {
    params.set('sort', query.sort ?? 'trouble');
    if (query.name) params.set('name', query.name);
    if (query.vhost) params.set('vhost', query.vhost);
  } else if (parts[0] === 'queue') {
    params.set('vhost', parts[1]);
    params.set('queue', parts[2]);
  } else {
    params.set('limit', '1');
  }
  const look = useEvents(`/v1/overview/events?${params}`);
  const places = VIEWS.filter((view) => !view.tag || hasTag(who, view.tag));
  const here = parts[0] === 'queue' ? '' : (parts[0] ?? '');
  const view = places.find((one) => one.name === here);

  useEffect(() => {
    const title = parts[0] === 'queue' ? parts[2] : view?.label;
    document.title = title ? `${title} · Overtake` : 'Overtake';
  }, [parts.join()]);
  useKeys(who);

  const shown = () => {
    if (parts[0] === 'queue' && parts[2]) {
      return html`<${Queue} key=${parts.slice(0, 3).join('/')} who=${who} look=${look} vhost=${parts[1]} name=${parts[2]} tab=${parts[3]} item=${parts[4]} />`;
    }
    if (!view) return html`<main id="main" tabindex="-1"><h1>Nothing is here</h1><p>The address leads nowhere, or to what your user may not see. <a href="#/">To the overview</a></p></main>`;
    return html`<${view.view} who=${who} look=${look} parts=${parts} query=${query} />`;
  };
  return html`<a class="skip" href="#main" onClick=${(event) => {
      event.preventDefault();
      document.querySelector('main')?.focus();
    }}>To the content</a>
    <div class="frame">
      <aside>
        <a class="brand" href="#/"><img src="/assets/icon.svg" alt="" width="26" height="26" /><span>Overtake</span></a>
        <nav aria-label="Views">
          ${places.map(
            (one) => html`<a href=${one.name ? href(one.name) : '#/'} aria-current=${one.name === here ? 'page' : undefined}>
              <svg viewBox="0 0 24 24" aria-hidden="true"><path d=${one.icon} /></svg><span>${one.label}</span></a>`,
          )}
        </nav>
      </aside>
      <${Me} who=${who} logOut=${logOut} theme=${theme} setTheme=${setTheme} />
      <div class="content">
        <${State} look=${look} lost=${lost} who=${who} />
        ${shown()}
      </div>
    </div>`;
}

function Me({ who, logOut, theme, setTheme }) {
  const next = { auto: 'light', light: 'dark', dark: 'auto' };
  return html`<section class="me" aria-label="You">
    <div class="name" title=${who.tags.join(', ')}><b>${who.name}</b><span class="muted">${who.tags[0] ?? 'no tag'}</span></div>
    <button class="icon" title=${`Colours: ${theme}`} aria-label=${`Colours: ${theme}. Change to ${next[theme]}`} onClick=${() => setTheme(next[theme])}>
      <svg viewBox="0 0 24 24" fill-rule="evenodd" aria-hidden="true"><path d=${theme === 'dark' ? 'M20 14a8 8 0 1 1-9-11 7 7 0 0 0 9 11z' : theme === 'light' ? 'M12 7a5 5 0 1 0 .01 0zM11 1h2v3h-2zM11 20h2v3h-2zM1 11h3v2H1zM20 11h3v2h-3z' : 'M12 2a10 10 0 1 0 .01 0zM12 4v16a8 8 0 0 1 0-16z'} /></svg>
    </button>
    <button class="icon" title="Log out" aria-label="Log out" onClick=${logOut}><svg viewBox="0 0 24 24" aria-hidden="true"><path d="M4 4h9v2H6v12h7v2H4zM15 7l5 5-5 5v-4H9v-2h6z" /></svg></button>
  </section>`;
}

// How the broker is: quiet while it is well.
function State({ look, lost, who }) {
  if (lost) return html`<div class="state bad" role="alert"><b>The broker does not answer.</b> Trying again; what is below is as it was.</div>`;
  if (!look) return null;
  const { broker } = look;
  const low = broker.disk_low_bytes && broker.disk_free_bytes < broker.disk_low_bytes * 2;
  if (broker.state === 'down') return html`<div class="state bad" role="alert"><b>The broker serves nothing.</b> ${broker.why}. Look at its log, then restart it.</div>`;
  if (broker.state === 'full') return html`<div class="state bad" role="alert"><b>Publishers are refused.</b> ${broker.why}. Consumers go on, and make room.</div>`;
  if (broker.state === 'draining') return html`<div class="state warn" role="alert"><b>The broker drains</b>, before it stops: nothing more is given out.</div>`;
  if (low) return html`<div class="state warn" role="alert"><b>The disk gets short:</b> ${bytes(broker.disk_free_bytes)} free; below ${bytes(broker.disk_low_bytes)} publishers are refused.</div>`;
  return null;
}

// Keys that work everywhere: g and a letter goes somewhere, p publishes, / filters, ? says so.
function useKeys(who) {
  const first = useRef('');
  useEffect(() => {
    const pressed = (event) => {
      const typing = event.target.closest?.('input, textarea, select, dialog');
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      const places = { o: '#/', e: '#/executions', s: '#/schedules', c: '#/clients', r: '#/topology', t: '#/routes', n: '#/endpoints', a: '#/admin' };
      if (first.current === 'g' && places[event.key]) location.hash = places[event.key];
      else if (event.key === 'p') openPublish({});
      else if (event.key === '/') document.querySelector('input[type=search]')?.focus();
      else if (event.key === '?') showKeys();
      else if (event.key !== 'g') {
        first.current = '';
        return;
      }
      event.preventDefault();
      first.current = event.key === 'g' ? 'g' : '';
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, [who]);
}

async function showKeys() {
  const { ask } = await import('./dialog.js');
  const keys = [['g o', 'overview'], ['g e', 'executions'], ['g s', 'schedules'], ['g c', 'clients'], ['g r', 'routing: exchanges and bindings'], ['g t', 'routes'], ['g n', 'endpoints and sources'], ['g a', 'admin'], ['/', 'filter'], ['p', 'publish a message'], ['j k', 'next and previous message'], ['Enter', 'open it'], ['x', 'select it'], ['Esc', 'close']];
  await ask({ title: 'Keys', verb: 'Good', text: html`<dl class="facts keys">${keys.map(([key, what]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>` });
}
