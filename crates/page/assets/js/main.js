// The page: who is logged in, what is shown, and what surrounds it.
import { api, onTrouble } from './api.js';
import { Layout } from './layout.js';
import { html, render, useEffect, useState } from './lib.js';
import { Login } from './login.js';
import { Toasts } from './toast.js';
import { useKept } from './use.js';

function Page() {
  // `undefined`: not known yet; `null`: nobody.
  const [who, setWho] = useState(undefined);
  const [lost, setLost] = useState(false);
  const [theme, setTheme] = useKept('theme', 'auto');

  useEffect(() => {
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  }, [theme]);
  useEffect(() => {
    onTrouble({ loggedOut: () => setWho(null), lost: setLost });
    const find = () =>
      api.get('/v1/whoami').then(setWho, (problem) => {
        if (problem.status === 401) setWho(null);
        else setTimeout(find, 2_000);
      });
    find();
  }, []);

  const logOut = async () => {
    await api.delete('/v1/session');
    setWho(null);
  };
  const shown = () => {
    if (who === undefined) return html`<main class="waits" aria-busy="true">${lost ? 'The broker does not answer. Trying again …' : ''}</main>`;
    if (who === null) return html`<${Login} onLogin=${setWho} />`;
    return html`<${Layout} who=${who} lost=${lost} logOut=${logOut} theme=${theme} setTheme=${setTheme} />`;
  };
  return html`${shown()}<${Toasts} />`;
}

render(html`<${Page} />`, document.getElementById('page'));
