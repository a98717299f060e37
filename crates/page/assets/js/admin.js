// Who may do what: users, tokens, virtual hosts, policies, and what administrators did.
import { api, enc } from './api.js';
import { Empty, ProblemBox, Table, Tabs, Title, When, copy } from './common.js';
import { ask } from './dialog.js';
import { count, plural } from './format.js';
import { hasTag } from './layout.js';
import { html } from './lib.js';
import { attempt } from './queue-actions.js';
import { href } from './route.js';
import { toast } from './toast.js';
import { useAnswer } from './use.js';

export function Admin({ who, parts }) {
  const tabs = [
    hasTag(who, 'administrator') && { name: 'users', label: 'Users', view: Users },
    { name: 'tokens', label: 'Tokens', view: Tokens },
    { name: 'vhosts', label: 'Virtual hosts', view: Vhosts },
    hasTag(who, 'policymaker') && { name: 'policies', label: 'Policies', view: Policies },
    hasTag(who, 'administrator') && { name: 'audit', label: 'What was done', view: Audit },
  ].filter(Boolean);
  const tab = tabs.find((one) => one.name === parts[1]) ?? tabs[0];
  return html`<main id="main" tabindex="-1"><${Title}>Admin</${Title}>
    <${Tabs} label="Admin" current=${tab.name} tabs=${tabs.map((one) => ({ ...one, href: href('admin', one.name) }))} />
    <${tab.view} who=${who} /></main>`;
}

const Sheet = ({ answer, empty, make, children }) => html`<section class="sheet">
  ${make && html`<header><span></span>${make}</header>`}
  ${answer.problem ? html`<${ProblemBox} problem=${answer.problem} retry=${answer.reload} />` : !answer.data ? html`<p class="inside muted">Looking …</p>` : (empty ?? children)}</section>`;

// Three patterns; an empty one matches nothing.
const Rights = ({ of }) => html`<span class="rights">${['configure', 'write', 'read'].map((right, at) => html`${at ? ', ' : ''}${right} ${of[right] ? html`<code>${of[right]}</code>` : 'nothing'}`)}</span>`;

const TAGS = ['administrator', 'monitoring', 'policymaker', 'management'];

function Users({ who }) {
  const answer = useAnswer('/v1/users', 10_000);
  const user = (name) => `/v1/users/${enc(name)}`;
  const put = async (row) => {
    const said = await ask({
      title: row ? `Change ${row.name}` : 'A new user',
      fields: [
        !row && { name: 'name', label: 'Name' },
        { name: 'password', label: row ? 'Another password' : 'Password', kind: 'password', optional: Boolean(row), hint: row ? 'Empty: it stays as it is' : '' },
        { name: 'tags', label: 'Tags', value: row?.tags.join(' ') ?? '', optional: true, hint: `${TAGS.join(', ')}; with spaces between` },
      ].filter(Boolean),
      way: row ? 'Rights that change count at once, also for who is connected.' : 'A new user may enter no virtual host until there are rights.',
      verb: row ? 'Change' : 'Make',
    });
    if (!said) return;
    await attempt(async () => {
      const name = row?.name ?? said.name.trim();
      await api.put(user(name), { tags: said.tags.split(/[\s,]+/).filter(Boolean), ...(said.password ? { password: said.password } : {}) });
      toast(row ? `${name} is changed.` : `${name} is there.`);
      answer.reload();
    });
  };
  const rights = async (row) => {
    const said = await ask({
      title: `Rights of ${row.name}`,
      text: 'Three regular expressions over names of queues and exchanges. They match anywhere unless they are anchored; an empty one matches nothing.',
      fields: [
        { name: 'vhost', label: 'Virtual host', value: row.permissions[0]?.vhost ?? '/' },
        { name: 'configure', label: 'May declare and delete', value: row.permissions[0]?.configure ?? '.*', optional: true },
        { name: 'write', label: 'May write', value: row.permissions[0]?.write ?? '.*', optional: true },
        { name: 'read', label: 'May read', value: row.permissions[0]?.read ?? '.*', optional: true },
      ],
      verb: 'Set',
    });
    if (!said) return;
    const at = `${user(row.name)}/permissions/${enc(said.vhost)}`;
    const before = row.permissions.find((one) => one.vhost === said.vhost);
    await attempt(async () => {
      await api.put(at, { configure: said.configure, write: said.write, read: said.read });
      toast(`${row.name} has other rights in ${said.vhost}.`, { undo: async () => { if (before) await api.put(at, { configure: before.configure, write: before.write, read: before.read }); else await api.delete(at); answer.reload(); } });
      answer.reload();
    });
  };
  const remove = async (row) => {
    const sure = await ask({ title: `Delete ${row.name}?`, text: 'Connections of the user are closed; rights and tokens are gone.', way: html`<b>Nobody can take this back.</b>`, verb: 'Delete', danger: true, type: row.name });
    if (!sure) return;
    await attempt(async () => {
      await api.delete(user(row.name));
      toast(`${row.name} is deleted.`);
      answer.reload();
    });
  };
  return html`<${Sheet} answer=${answer} make=${html`<button class="primary" onClick=${() => put()}>New user</button>`}><${Table} label="Users" rows=${answer.data?.users ?? []} id=${(row) => row.name} columns=${[
    { label: 'User', show: (row) => html`<b>${row.name}</b>${row.name === who.name ? html` <span class="badge">you</span>` : ''}` },
    { label: 'Tags', show: (row) => row.tags.join(', ') || html`<span class="muted">none</span>` },
    { label: 'Rights', show: (row) => row.permissions.length ? row.permissions.map((one) => html`<div>in <b>${one.vhost}</b>: <${Rights} of=${one} /></div>`) : html`<span class="muted">may enter nowhere</span>` },
    { label: 'Password', show: (row) => (row.has_password ? 'yes' : 'none') },
    { label: '', show: (row) => html`<div class="actions"><button class="small" onClick=${() => put(row)}>Change</button><button class="small" onClick=${() => rights(row)}>Rights</button>${row.name !== who.name && html`<button class="small" onClick=${() => remove(row)}>Delete</button>`}</div>` },
  ]} /></${Sheet}>`;
}

function Tokens({ who }) {
  const answer = useAnswer('/v1/tokens', 10_000);
  const make = async () => {
    const said = await ask({
      title: 'A new token',
      text: 'A program shows it in place of a name and a password. It lets its bearer do what you may, within what is said here.',
      fields: [
        { name: 'label', label: 'What it is for', placeholder: 'worker on host 7' },
        { name: 'days', label: 'Ends after so many days', kind: 'number', value: 90, hint: '0: never' },
        { name: 'write', label: 'May write', value: '.*', optional: true },
        { name: 'read', label: 'May read', value: '.*', optional: true },
        { name: 'configure', label: 'May declare and delete', value: '', optional: true },
      ],
      verb: 'Make it',
    });
    if (!said) return;
    await attempt(async () => {
      const { label, configure, write, read } = said;
      const token = await api.post('/v1/tokens', { label, configure, write, read, ...(Number(said.days) ? { expires_in_ms: Number(said.days) * 86_400_000 } : {}) });
      answer.reload();
      await ask({ title: 'It is told this once', text: html`Keep it where the program finds it: <pre>${token.secret}</pre><button class="small" type="button" onClick=${() => copy(token.secret)}>Copy</button>`, verb: 'Done' });
    });
  };
  const revoke = async (row) => {
    const sure = await ask({ title: `Revoke the token ${row.label || row.id}?`, text: 'From now on nobody can do anything with it.', way: html`<b>Nobody can take this back.</b>`, verb: 'Revoke', danger: true });
    if (!sure) return;
    await attempt(async () => {
      await api.delete(`/v1/tokens/${enc(row.id)}`);
      toast('The token is revoked.');
      answer.reload();
    });
  };
  const none = answer.data?.tokens.length === 0 && html`<${Empty} title="No tokens"><p>A program had better not know a password.</p></${Empty}>`;
  return html`<${Sheet} answer=${answer} empty=${none || undefined} make=${!who.token && html`<button class="primary" onClick=${make}>New token</button>`}><${Table} label="Tokens" rows=${answer.data?.tokens ?? []} id=${(row) => row.id} columns=${[
    { label: 'For', show: (row) => html`<b>${row.label || row.id}</b>` },
    { label: 'User', show: (row) => row.user },
    { label: 'May', show: (row) => (row.permission ? html`<${Rights} of=${row.permission} />` : 'what the user may') },
    { label: 'Made', show: (row) => html`<${When} at=${row.created_at} />` },
    { label: 'Ends', show: (row) => (row.expires_at ? html`<${When} at=${row.expires_at} />` : 'never') },
    { label: '', show: (row) => html`<button class="small" onClick=${() => revoke(row)}>Revoke</button>` },
  ]} /></${Sheet}>`;
}

function Vhosts({ who }) {
  const answer = useAnswer('/v1/vhosts', 10_000);
  const may = hasTag(who, 'administrator');
  const make = async () => {
    const said = await ask({ title: 'A new virtual host', text: 'A name space of its own for queues and exchanges. You will have all rights in it.', fields: [{ name: 'name', label: 'Name' }, { name: 'description', label: 'What it is for', optional: true }], verb: 'Make it' });
    if (!said) return;
    await attempt(async () => {
      await api.put(`/v1/vhosts/${enc(said.name.trim())}`, { description: said.description });
      toast(`${said.name} is there.`);
      answer.reload();
    });
  };
  const remove = async (row) => {
    const sure = await ask({ title: `Delete ${row.name}?`, text: `Its ${plural(row.queues, 'queue')} with all messages, its exchanges, policies and all rights in it will be gone.`, way: html`<b>Nobody can take this back.</b>`, verb: 'Delete', danger: true, type: row.name });
    if (!sure) return;
    await attempt(async () => {
      await api.delete(`/v1/vhosts/${enc(row.name)}`);
      toast(`${row.name} is deleted.`);
      answer.reload();
    });
  };
  return html`<${Sheet} answer=${answer} make=${may && html`<button class="primary" onClick=${make}>New virtual host</button>`}><${Table} label="Virtual hosts" rows=${answer.data?.vhosts ?? []} id=${(row) => row.name} columns=${[
    { label: 'Name', show: (row) => html`<a href=${`#/?vhost=${enc(row.name)}`}><b>${row.name}</b></a>` },
    { label: 'For', show: (row) => row.description || html`<span class="muted">–</span>` },
    { label: 'Queues', number: true, show: (row) => count(row.queues) + (row.max_queues ? ` of ${count(row.max_queues)}` : '') },
    { label: 'Connections at most', number: true, show: (row) => row.max_connections ?? '–' },
    { label: '', show: (row) => may && row.name !== '/' && html`<button class="small" onClick=${() => remove(row)}>Delete</button>` },
  ]} /></${Sheet}>`;
}

function Policies({ who }) {
  const own = useAnswer('/api/policies', 10_000);
  const path = (row) => `/api/policies/${enc(row.vhost)}/${enc(row.name)}`;
  const put = async (row) => {
    const said = await ask({
      title: row ? `Change the policy ${row.name}` : 'A new policy',
      wide: true,
      text: 'Settings by name: they hold for all queues or exchanges whose names match, as long as the policy is there. Of several, the one with the highest priority applies.',
      fields: [
        { name: 'name', label: 'Name', value: row?.name },
        { name: 'vhost', label: 'Virtual host', value: row?.vhost ?? '/' },
        { name: 'pattern', label: 'Names that match', value: row?.pattern ?? '^jobs\\.', hint: 'A regular expression' },
        { name: 'apply', label: 'For', kind: 'select', value: row?.['apply-to'] ?? 'queues', options: ['queues', 'exchanges', 'all'].map((value) => ({ value, label: value })) },
        { name: 'priority', label: 'Priority', kind: 'number', value: row?.priority ?? 0 },
        { name: 'definition', label: 'What it says', kind: 'area', rows: 6, value: JSON.stringify(row?.definition ?? { 'max-length': 10_000 }, null, 2), hint: 'JSON: message-ttl, max-length, overflow, dead-letter-exchange, delivery-limit, expires …' },
      ],
      way: 'Can be undone.',
      verb: row ? 'Change' : 'Make it',
    });
    if (!said) return;
    await attempt(async () => {
      const at = path(said);
      await api.put(at, { pattern: said.pattern, definition: JSON.parse(said.definition), priority: Number(said.priority), 'apply-to': said.apply });
      toast(`The policy ${said.name} holds.`, { undo: async () => { if (row) await api.put(path(row), { pattern: row.pattern, definition: row.definition, priority: row.priority, 'apply-to': row['apply-to'] }); else await api.delete(at); own.reload(); } });
      own.reload();
    });
  };
  const remove = async (row) => {
    const sure = await ask({ title: `Delete the policy ${row.name}?`, text: 'Queues that it matched go by their own settings again, at once, with all that waits in them.', way: 'Can be undone; what a limit that comes back drops, is gone.', verb: 'Delete', danger: true });
    if (!sure) return;
    await attempt(async () => {
      await api.delete(path(row));
      toast(`The policy ${row.name} is gone.`, { undo: async () => { await api.put(path(row), { pattern: row.pattern, definition: row.definition, priority: row.priority, 'apply-to': row['apply-to'] }); own.reload(); } });
      own.reload();
    });
  };
  const none = own.data?.length === 0 && html`<${Empty} title="No policies"><p>A policy says settings for all queues whose names match.</p></${Empty}>`;
  return html`<${Sheet} answer=${own} empty=${none || undefined} make=${hasTag(who, 'policymaker') && html`<button class="primary" onClick=${() => put()}>New policy</button>`}><${Table} label="Policies" rows=${own.data ?? []} id=${(row) => row.vhost + row.name} columns=${[
    { label: 'Policy', show: (row) => html`<b>${row.name}</b>` },
    { label: 'Virtual host', show: (row) => row.vhost },
    { label: 'Names', show: (row) => html`<code>${row.pattern}</code>` },
    { label: 'For', show: (row) => row['apply-to'] },
    { label: 'Priority', number: true, show: (row) => row.priority },
    { label: 'Says', show: (row) => html`<code>${JSON.stringify(row.definition)}</code>` },
    { label: '', show: (row) => html`<div class="actions"><button class="small" onClick=${() => put(row)}>Change</button><button class="small" onClick=${() => remove(row)}>Delete</button></div>` },
  ]} /></${Sheet}>`;
}

function Audit() {
  const answer = useAnswer('/v1/audit', 5_000);
  const none = answer.data?.deeds.length === 0 && html`<${Empty} title="Nothing yet"><p>What administrators do since the broker started is here, the newest first.</p></${Empty}>`;
  return html`<${Sheet} answer=${answer} empty=${none || undefined}><${Table} label="What administrators did" rows=${answer.data?.deeds ?? []} id=${(row) => row.at + row.action + row.object} columns=${[
    { label: 'When', show: (row) => html`<span class="nowrap"><${When} at=${row.at} /></span>` },
    { label: 'Who', show: (row) => `${row.user ?? 'the broker'}${row.from ? ` from ${row.from}` : ''}` },
    { label: 'What', show: (row) => html`<b>${row.action}</b>` },
    { label: 'Of', show: (row) => [row.object, row.vhost && row.vhost !== '/' && `in ${row.vhost}`].filter(Boolean).join(' ') },
    { label: 'Changed', show: (row) => html`<${Change} before=${row.before} after=${row.after} />` },
  ]} /></${Sheet}>`;
}

// Only what is different.
function Change({ before, after }) {
  if (before === undefined && after === undefined) return '';
  if (typeof before !== 'object' || typeof after !== 'object' || !before || !after) return html`<code>${after === undefined || after === null ? '' : JSON.stringify(after)}</code>`;
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]));
  return keys.map((key) => html`<div><code>${key}: ${JSON.stringify(before[key]) ?? '–'} → ${JSON.stringify(after[key]) ?? '–'}</code></div>`);
}
