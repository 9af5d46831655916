// On narrow screens the side lists are drawers.

import { byId } from './chat-dom.js';

/** The same width as in chat.css. */
const NARROW = matchMedia('(width < 64rem)');

export class Panels {
  #chat;
  #button = null;

  constructor(chat) {
    this.#chat = chat;
    for (const button of chat.querySelectorAll('[aria-controls]')) {
      button.addEventListener('click', () => this.#show(button));
    }
    for (const button of chat.querySelectorAll('.close')) button.addEventListener('click', () => this.close());
    byId('backdrop').addEventListener('click', () => this.close());
    NARROW.addEventListener('change', () => this.close());
  }

  /** Closes the open drawer; returns whether there was one. */
  close() {
    if (!this.#button) return false;
    const button = this.#button;
    this.#button = null;
    button.setAttribute('aria-expanded', 'false');
    delete this.#chat.dataset.open;
    byId(button.getAttribute('aria-controls')).classList.remove('open');
    this.#shutOff(null);
    button.focus();
    return true;
  }

  #show(button) {
    this.#button = button;
    const panel = byId(button.getAttribute('aria-controls'));
    button.setAttribute('aria-expanded', 'true');
    this.#chat.dataset.open = panel.id;
    panel.classList.add('open');
    this.#shutOff(panel);
    panel.querySelector('h2').focus();
  }

  /** Makes everything behind an open drawer inert. */
  #shutOff(panel) {
    const behind = [...this.#chat.children, document.querySelector('header'), byId('served')];
    for (const part of behind) part.inert = panel !== null && part !== panel && part.id !== 'backdrop';
  }
}
