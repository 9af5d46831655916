// The list of conversations, newest first.

import { ago, byId, element } from './chat-dom.js';

const PAGE = 20;

export class Conversations {
  #api;
  #open;
  #known = new Map();
  #next = null;
  #current = null;
  #list = byId('conversation-list');
  #note = byId('conversations-note');
  #more = byId('more-conversations');

  /** Calls `open(id)` when the user chooses one. */
  constructor(api, open) {
    this.#api = api;
    this.#open = open;
    this.#more.addEventListener('click', () => this.#load(this.#next));
    this.#list.addEventListener('click', (event) => this.#chosen(event));
  }

  /** Reads the newest ones; older ones stay in the list. */
  async refresh() {
    await this.#load({ limit: PAGE });
  }

  set current(id) {
    this.#current = id;
    for (const link of this.#list.querySelectorAll('a')) mark(link, id);
  }

  async #load(parameters) {
    this.#more.disabled = true;
    try {
      const first = this.#known.size === 0 || 'after' in parameters;
      const { items, next } = await this.#api.page('/conversations', parameters);
      for (const item of items) this.#known.set(item.id, item);
      // Refreshing must not forget the position of the last page.
      if (first) this.#next = next;
      this.#draw();
      this.#note.textContent = this.#known.size === 0 ? 'None yet.' : '';
    } catch (error) {
      this.#note.textContent = `Could not load conversations. ${error.message}`;
    } finally {
      this.#more.disabled = false;
      this.#more.hidden = !this.#next;
    }
  }

  #draw() {
    const sorted = [...this.#known.values()].sort((a, b) => b.last_activity.localeCompare(a.last_activity));
    const focused = document.activeElement?.dataset?.conversation;
    this.#list.replaceChildren(...sorted.map((item) => this.#entry(item)));
    if (focused) this.#list.querySelector(`[data-conversation="${CSS.escape(focused)}"]`)?.focus();
  }

  #entry({ id, preview, last_activity: last }) {
    const when = element('time', { dateTime: last }, ago(new Date(last)));
    const link = element('a', { href: `?conversation=${encodeURIComponent(id)}` });
    link.dataset.conversation = id;
    link.append(element('span', { className: 'preview' }, preview || 'Empty'), when);
    mark(link, this.#current);
    return element('li', {}, link);
  }

  #chosen(event) {
    const link = event.target.closest('a');
    // The browser opens other tabs and windows itself.
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    this.#open(link.dataset.conversation);
  }
}

function mark(link, current) {
  if (link.dataset.conversation === current) link.setAttribute('aria-current', 'true');
  else link.removeAttribute('aria-current');
}
