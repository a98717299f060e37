// Where one is: behind the `#`, so that reload, back, and a link sent to a colleague lead there again.
import { useEffect, useState } from './lib.js';

const parse = (hash) => {
  const [path, query = ''] = hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map((part) => {
    try {
      return decodeURIComponent(part);
    } catch {
      return part;
    }
  });
  return { parts, query: Object.fromEntries(new URLSearchParams(query)) };
};

export const href = (...parts) => `#/${parts.map(encodeURIComponent).join('/')}`;

export const go = (target) => {
  location.hash = target.replace(/^#/, '');
};

// Changes what stands behind the `?`, without a step in the history.
export function setQuery(values) {
  const { parts, query } = parse(location.hash);
  const next = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, ...values })) {
    if (value !== '' && value !== undefined && value !== null) next.set(name, value);
  }
  const text = next.toString();
  history.replaceState(null, '', href(...parts) + (text ? `?${text}` : ''));
  dispatchEvent(new HashChangeEvent('hashchange'));
}

export function useRoute() {
  const [route, set] = useState(() => parse(location.hash));
  useEffect(() => {
    const changed = () => set(parse(location.hash));
    addEventListener('hashchange', changed);
    return () => removeEventListener('hashchange', changed);
  }, []);
  return route;
}
