// The priorities that a queue knows, the most urgent first, in the words of its scheme.
const NAMED = ['critical', 'high', 'normal', 'low', 'background'];
const SIGNED = [['CRITICAL', 100], ['HIGH', 50], ['NORMAL', 0], ['LOW', -50], ['BULK', -100]];

const numbers = (from, to) => {
  const step = from > to ? -1 : 1;
  return Array.from({ length: Math.abs(from - to) + 1 }, (_, at) => from + at * step);
};

// `{ value, label }` each. What the wire takes as a number stays one.
export function priorities(scheme) {
  if (scheme === 'named') return NAMED.map((name) => ({ value: name, label: name }));
  if (scheme === 'signed') return SIGNED.map(([name, value]) => ({ value, label: `${name} (${value})` }));
  if (scheme === 'route') return numbers(0, 9).map((value) => ({ value, label: value === 0 ? '0, most urgent' : `${value}` }));
  const top = scheme.startsWith('max-') ? Number(scheme.slice(4)) : 9;
  return numbers(top, 0).map((value) => ({ value, label: value === top ? `${value}, most urgent` : `${value}` }));
}

// What a form says, as the wire takes it.
export const given = (text) => (/^-?\d+$/.test(String(text)) ? Number(text) : text);
