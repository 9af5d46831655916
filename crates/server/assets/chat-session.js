// Signs in with an API token, and out. The server sets a cookie that scripts cannot read.

import { byId } from './chat-dom.js';

export function offerSignIn(api) {
  const form = byId('sign-in');
  const problem = byId('sign-in-problem');
  const token = byId('token');
  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    const button = form.querySelector('button');
    button.disabled = true;
    problem.hidden = true;
    try {
      await api.signIn(token.value.trim());
      location.reload();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
      button.disabled = false;
      token.focus();
      token.select();
    }
  });
}

export function offerSignOut(api) {
  const button = byId('sign-out');
  if (!button) return;
  button.hidden = false;
  button.addEventListener('click', async () => {
    button.disabled = true;
    try {
      await api.signOut();
      location.assign(location.pathname);
    } catch {
      button.disabled = false;
      button.textContent = 'Try to sign out again';
    }
  });
}
