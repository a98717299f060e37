// What was done, for a moment in the corner; with a way back where there is one.
import { html, useEffect, useState } from './lib.js';

let tell = () => {};
let number = 0;

// Says something. `undo`, if given, takes it back, and is offered for ten seconds.
export const toast = (text, { undo, kind = 'done' } = {}) => tell({ number: (number += 1), text, undo, kind });

// Says what went wrong, and what to do.
export const toastProblem = (problem) =>
  tell({ number: (number += 1), text: problem.message, hint: problem.hint, kind: 'problem' });

export function Toasts() {
  const [all, set] = useState([]);
  tell = (one) => set((before) => [...before.slice(-3), one]);
  const drop = (one) => set((before) => before.filter((other) => other.number !== one.number));
  return html`<div class="toasts" role="status" aria-live="polite">
    ${all.map((one) => html`<${Toast} key=${one.number} one=${one} drop=${() => drop(one)} />`)}
  </div>`;
}

function Toast({ one, drop }) {
  const [held, hold] = useState(false);
  useEffect(() => {
    if (held) return undefined;
    const timer = setTimeout(drop, one.kind === 'problem' ? 20_000 : 10_000);
    return () => clearTimeout(timer);
  }, [held]);
  const undo = async () => {
    drop();
    try {
      await one.undo();
      toast('Undone.');
    } catch (problem) {
      toastProblem(problem);
    }
  };
  return html`<div
    class="toast ${one.kind}"
    onMouseEnter=${() => hold(true)}
    onMouseLeave=${() => hold(false)}
    onFocusIn=${() => hold(true)}
    onFocusOut=${() => hold(false)}
  >
    <div><p>${one.text}</p>${one.hint && html`<p class="hint">${one.hint}</p>`}</div>
    ${one.undo && html`<button class="small" onClick=${undo}>Undo</button>`}
    <button class="icon" aria-label="Dismiss" onClick=${drop}>×</button>
  </div>`;
}
