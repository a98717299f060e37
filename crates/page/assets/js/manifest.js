// The manifest of routes as a text that somebody works on: JSON or TOML, and kept while one looks elsewhere.
import { useState } from './lib.js';

export const EXAMPLE = `{
  "schemaVersion": "1.1",
  "routes": {
    "alerts": {
      "route": "FROM /messages/modules/camera/* WHERE severity = 'high' AND as_number(temperature) > 30 INTO $upstream",
      "priority": 0,
      "timeToLiveSecs": 86400
    },
    "pictures": {
      "route": "FROM /messages/modules/camera/* WHERE $body.kind = 'picture' INTO BrokeredEndpoint(\\"/modules/archive/inputs/pictures\\")",
      "priority": 5
    },
    "telemetry": "FROM /messages/* INTO $upstream",
    "lost": {
      "route": "FROM /* INTO Endpoint(\\"lost\\")",
      "fallback": true
    }
  },
  "storeAndForwardConfiguration": {
    "timeToLiveSecs": 7200
  }
}`;

// A manifest in JSON is an object, and no TOML begins as one.
export const isJson = (text) => /^\s*(\{|$)/.test(text);
export const mediaType = (text) => (isJson(text) ? 'application/json' : 'application/toml');

// What JSON says, or `null` while it says nothing.
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

const isTable = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
// A string of JSON is one of TOML, too.
const tomlKey = (name) => (/^[\w-]+$/.test(name) ? name : JSON.stringify(name));

// The same in TOML: of each table what is no table first, as TOML wants it.
export function toml(value, path = []) {
  const entries = Object.entries(value);
  const own = entries.filter(([, one]) => !isTable(one)).map(([name, one]) => `${tomlKey(name)} = ${JSON.stringify(one)}\n`);
  const below = entries.filter(([, one]) => isTable(one)).map(([name, one]) => toml(one, [...path, tomlKey(name)]));
  const head = path.length && (own.length || !below.length) ? `[${path.join('.')}]\n` : '';
  return [head + own.join(''), ...below].filter(Boolean).join('\n');
}

// By user and virtual host; there as long as the page is.
const drafts = new Map();

// What somebody has written, `{ text, isSet }` or `null`, and what changes it.
export function useDraft(key) {
  const [, turn] = useState(0);
  const change = (next) => {
    const draft = typeof next === 'function' ? next(drafts.get(key) ?? null) : next;
    if (draft) drafts.set(key, draft);
    else drafts.delete(key);
    turn((before) => before + 1);
  };
  return [drafts.get(key) ?? null, change];
}
