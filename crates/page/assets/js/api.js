// Asking the broker. Every request says that it is the page's (`Overtake-Page`), so that the cookie of the session counts.

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || body.reason || `the broker answered ${status}`);
    this.status = status;
    this.code = body.code || body.error || '';
    this.title = body.title || '';
    this.hint = body.hint || '';
    // The field or the part that it is about.
    this.key = body.key || '';
  }
}

// Whoever must know when nobody is logged in any more, or the broker is not there.
const hears = { loggedOut: () => {}, lost: () => {} };
export const onTrouble = (given) => Object.assign(hears, given);

// A body is sent as JSON; with `type`, it is text of that media type already.
async function send(path, { method = 'GET', body, type, signal, accept } = {}) {
  const headers = { 'Overtake-Page': '1' };
  if (body !== undefined) headers['Content-Type'] = type ?? 'application/json';
  if (accept) headers.Accept = accept;
  let response;
  try {
    response = await fetch(path, {
      method,
      headers,
      signal,
      body: body === undefined || type ? body : JSON.stringify(body),
      credentials: 'same-origin',
    });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    hears.lost(true);
    throw new Problem(0, {
      title: 'the broker does not answer',
      hint: 'is it running, and is the network up? The page tries again by itself',
    });
  }
  hears.lost(false);
  if (response.ok) return response;
  const problem = new Problem(response.status, await response.json().catch(() => ({})));
  if (response.status === 401 && path !== '/v1/session') hears.loggedOut();
  throw problem;
}

async function json(path, options) {
  const response = await send(path, options);
  const text = await response.text();
  return text ? JSON.parse(text) : undefined;
}

export const api = {
  get: (path, signal) => json(path, { signal }),
  put: (path, body = {}, type) => json(path, { method: 'PUT', body, type }),
  patch: (path, body = {}) => json(path, { method: 'PATCH', body }),
  post: (path, body = {}) => json(path, { method: 'POST', body }),
  delete: (path, body) => json(path, { method: 'DELETE', body }),
};

export const enc = encodeURIComponent;

// A query of those values that are there.
export function query(values) {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== '');
  return pairs.length ? `?${pairs.map(([name, value]) => `${enc(name)}=${enc(value)}`).join('&')}` : '';
}

// The address of a queue, and of what is below it.
export const queuePath = (vhost, name, below = '', values = {}) =>
  `/v1/queues/${enc(name)}${below}${query({ ...values, vhost })}`;

// Server-sent events (HTML, 9.2.6), as `EventSource` has them, but with headers: calls `hear` with the data of each, comes back after a
// break, and ends with the signal.
export async function events(path, hear, signal) {
  let wait = 500;
  while (!signal.aborted) {
    try {
      const response = await send(path, { signal, accept: 'text/event-stream' });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = '';
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        wait = 500;
        const parts = (rest + value).split('\n\n');
        rest = parts.pop();
        for (const part of parts) {
          const data = part.split('\n').filter((line) => line.startsWith('data:'));
          if (data.length) hear(JSON.parse(data.map((line) => line.slice(5).trimStart()).join('\n')));
        }
      }
    } catch (error) {
      if (signal.aborted || error.status === 401 || error.status === 403) return;
    }
    if (signal.aborted) return;
    hears.lost(true);
    await new Promise((resume) => setTimeout(resume, wait));
    wait = Math.min(wait * 2, 10_000);
  }
}
