// Who are you?
import { api } from './api.js';
import { ProblemBox, Segments } from './common.js';
import { html, useState } from './lib.js';

export function Login({ onLogin }) {
  const [by, setBy] = useState('password');
  const [values, set] = useState({ user: '', password: '', token: '' });
  const [problem, setProblem] = useState(null);
  const [busy, setBusy] = useState(false);
  const change = (name) => (event) => set((before) => ({ ...before, [name]: event.target.value }));
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    const { user, password, token } = values;
    try {
      onLogin(await api.post('/v1/session', by === 'token' ? { token: token.trim() } : { user, password }));
    } catch (refused) {
      setProblem(refused);
    }
    setBusy(false);
  };
  const here = ['localhost', '127.0.0.1', '[::1]'].includes(location.hostname);
  return html`<main class="login">
    <form onSubmit=${submit}>
      <h1><img src="/assets/icon.svg" alt="" width="36" height="36" />Overtake</h1>
      <p class="muted">Log in to ${location.host}</p>
      <${Segments} label="Log in by" value=${by} change=${setBy} options=${[
        { value: 'password', label: 'Password' },
        { value: 'token', label: 'Token' },
      ]} />
      ${by === 'password'
        ? html`<label class="field"><span>User</span><input name="username" autocomplete="username" required autofocus value=${values.user} onInput=${change('user')} /></label>
            <label class="field"><span>Password</span><input name="password" type="password" autocomplete="current-password" required value=${values.password} onInput=${change('password')} /></label>`
        : html`<label class="field"><span>Token</span><input name="token" type="password" autocomplete="off" required placeholder="ovt_…" value=${values.token} onInput=${change('token')} /></label>`}
      ${problem && html`<${ProblemBox} problem=${problem} />`}
      <button type="submit" class="primary" disabled=${busy}>${busy ? 'Asking …' : 'Log in'}</button>
      ${here && html`<p class="hint">A broker that is new knows the user <b>guest</b> with the password <b>guest</b>, from its own machine.</p>`}
    </form>
  </main>`;
}
