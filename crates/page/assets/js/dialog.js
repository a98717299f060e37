// Questions before something happens: what will happen, to how much, and whether there is a way back.
import { html, render, useEffect, useRef, useState } from './lib.js';

// A window over the page. Escape and a click beside it close it.
export function Dialog({ title, onClose, children, wide }) {
  const ref = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    ref.current.showModal();
    return () => before?.focus?.();
  }, []);
  const beside = (event) => event.target === ref.current && onClose();
  return html`<dialog
    ref=${ref}
    class=${wide ? 'wide' : ''}
    aria-labelledby="dialog-title"
    onCancel=${(event) => {
      event.preventDefault();
      onClose();
    }}
    onMouseDown=${beside}
  >
    <header><h2 id="dialog-title">${title}</h2><button class="icon" aria-label="Close" onClick=${onClose}>×</button></header>
    ${children}
  </dialog>`;
}

// Asks, and answers what was said, or `null`.
//
// `title` says what is to be done, `text` what will happen then, `way` how to take it back or that nobody can; `verb` is on the button;
// `danger` colours it; `type` is a word to be typed first, for what cannot be taken back; `fields` are asked for besides:
// `{ name, label, kind, value, options, hint, optional, min }`.
export function ask(question) {
  return new Promise((answer) => {
    const place = document.createElement('div');
    document.body.append(place);
    const close = (said) => {
      render(null, place);
      place.remove();
      answer(said);
    };
    render(html`<${Question} ...${question} close=${close} />`, place);
  });
}

function Question({ title, text, way, verb, danger, type, fields = [], wide, close }) {
  const [values, set] = useState(() => Object.fromEntries(fields.map((field) => [field.name, field.value ?? ''])));
  const [typed, setTyped] = useState('');
  const change = (name, value) => set((before) => ({ ...before, [name]: value }));
  const submit = (event) => {
    event.preventDefault();
    close(values);
  };
  return html`<${Dialog} title=${title} wide=${wide} onClose=${() => close(null)}>
    <form onSubmit=${submit}>
      ${text && html`<p>${text}</p>`}
      ${fields.map((field) => html`<${Field} key=${field.name} field=${field} value=${values[field.name]} change=${(value) => change(field.name, value)} />`)}
      ${way && html`<p class="way">${way}</p>`}
      ${type &&
      html`<label class="field"><span>To be sure, type <b>${type}</b></span>
        <input value=${typed} onInput=${(event) => setTyped(event.target.value)} autocomplete="off" spellcheck=${false} /></label>`}
      <footer>
        <button type="button" onClick=${() => close(null)}>Cancel</button>
        <button type="submit" class=${danger ? 'danger' : 'primary'} disabled=${Boolean(type) && typed !== type}>${verb}</button>
      </footer>
    </form>
  </${Dialog}>`;
}

// Something to fill in.
export function Field({ field, value, change }) {
  const id = `field-${field.name}`;
  const onInput = (event) => change(event.target.value);
  const shared = { id, value, onInput, required: !field.optional, 'aria-describedby': field.hint ? `${id}-hint` : undefined };
  const input = {
    select: () => html`<select ...${shared} onChange=${onInput}>${field.options.map((option) => html`<option value=${option.value}>${option.label}</option>`)}</select>`,
    text: () => html`<input ...${shared} autocomplete="off" spellcheck=${false} placeholder=${field.placeholder ?? ''} />`,
    password: () => html`<input ...${shared} type="password" autocomplete=${field.autocomplete ?? 'new-password'} />`,
    number: () => html`<input ...${shared} type="number" min=${field.min ?? 0} step="1" inputmode="numeric" />`,
    area: () => html`<textarea ...${shared} rows=${field.rows ?? 5} spellcheck=${false}></textarea>`,
    check: () => html`<input id=${id} type="checkbox" checked=${value} onChange=${(event) => change(event.target.checked)} />`,
  }[field.kind ?? 'text'];
  return html`<div class=${field.kind === 'check' ? 'field check' : 'field'}>
    <label for=${id}>${field.label}${field.optional && field.kind !== 'check' && html` <span class="muted">(optional)</span>`}</label>
    ${input()}
    ${field.hint && html`<p class="hint" id="${id}-hint">${field.hint}</p>`}
  </div>`;
}
