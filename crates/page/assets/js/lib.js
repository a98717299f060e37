// What every module draws with: Preact's functions, its hooks, and `html`, a tagged template in place of JSX.
import { h, render, Fragment } from '../vendor/preact.mjs';
import htm from '../vendor/htm.mjs';

export * from '../vendor/hooks.mjs';
export { h, render, Fragment };
export const html = htm.bind(h);

// The class names of those that are true.
export const classes = (...names) => names.filter(Boolean).join(' ');
