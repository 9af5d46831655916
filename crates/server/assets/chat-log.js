// The messages. A growing answer is hidden from screen readers until it is complete.

import { element, safeAddress } from './chat-dom.js';
import { markdown } from './chat-markdown.js';
import { outcomeOf, stateOf } from './chat-tools.js';

/** Closer to the end than this, the view follows new messages. */
const FOLLOW_PX = 80;

export class Log {
  #box;
  #newest;
  /** Whether the end was in view at the last change. */
  #follows = true;

  constructor(box, newest) {
    this.#box = box;
    this.#newest = newest;
    box.addEventListener('scroll', () => this.#showNewest(), { passive: true });
    newest?.addEventListener('click', () => {
      this.toEnd();
      box.focus();
    });
  }

  clear() {
    this.#box.replaceChildren();
    this.#showNewest();
  }

  question(text) {
    this.#add(element('article', { className: 'question' }, title('You said'), element('p', {}, text)));
    this.toEnd();
  }

  /** A note with buttons `[label, action]`; pressing one removes the note. */
  note(text, actions, kind = '') {
    const node = element('div', { className: `notice ${kind}`.trim() }, element('p', {}, text));
    node.append(...buttons(actions, () => node.remove()));
    this.#add(node);
  }

  /** Calls that wait, each with buttons; `decide(confirmation, yes)` returns whether it could be decided now. */
  confirmations(waiting, decide) {
    for (const confirmation of waiting ?? []) {
      const node = element('div', { className: 'confirm', role: 'group', 'aria-label': confirmation.question });
      const action = (yes) => () => decide(confirmation, yes) && node.remove();
      if (waiting.length > 1) node.append(element('p', {}, confirmation.question));
      node.append(...buttons([['Yes', action(true)], ['No', action(false)]], () => {}));
      this.#add(node);
    }
  }

  /** Removes the buttons of earlier messages. */
  withdrawOffers() {
    for (const node of this.#box.querySelectorAll('.confirm, .notice button')) node.remove();
  }

  /** Starts a growing answer. */
  begin() {
    const answer = new GrowingAnswer(() => this.#follow());
    this.#add(answer.node);
    return answer;
  }

  /** Replaces the growing answer by the complete one, which screen readers announce. */
  complete(growing, answer) {
    const follows = this.#atEnd();
    growing.node.replaceWith(completed(answer));
    if (follows) this.toEnd();
    else this.#showNewest();
  }

  /** Stored messages, newest last; screen readers do not announce them. */
  history(messages) {
    this.#silently(() => this.#box.append(...messages.map(kept)));
    this.toEnd();
  }

  /** Adds older messages above without scrolling the view. */
  earlier(messages, more) {
    const below = this.#box.scrollHeight - this.#box.scrollTop;
    this.#silently(() => {
      this.#box.querySelector('.earlier')?.remove();
      this.#box.prepend(...messages.map(kept));
      if (more) this.offerEarlier(more);
    });
    this.#box.scrollTop = this.#box.scrollHeight - below;
  }

  offerEarlier(more) {
    const button = element('button', { type: 'button', className: 'plain earlier' }, 'Earlier messages');
    button.addEventListener('click', () => {
      button.disabled = true;
      more().catch(() => {
        button.disabled = false;
        button.textContent = 'Could not load earlier messages. Try again';
      });
    });
    this.#box.prepend(button);
  }

  toEnd() {
    this.#box.scrollTop = this.#box.scrollHeight;
    this.#showNewest();
  }

  #add(node) {
    const follows = this.#atEnd();
    this.#box.append(node);
    if (follows) this.toEnd();
  }

  #follow() {
    if (this.#follows) this.toEnd();
    else this.#showNewest();
  }

  #atEnd() {
    return this.#box.scrollHeight - this.#box.scrollTop - this.#box.clientHeight < FOLLOW_PX;
  }

  #showNewest() {
    this.#follows = this.#atEnd();
    if (this.#newest) this.#newest.hidden = this.#follows;
  }

  #silently(change) {
    this.#box.setAttribute('aria-live', 'off');
    change();
    setTimeout(() => this.#box.setAttribute('aria-live', 'polite'), 200);
  }
}

class GrowingAnswer {
  #text = '';
  #calls = new Map();
  #drawn = true;
  #changed;
  #tools = element('ul', { className: 'tools' });
  #body = element('div', { className: 'body' });

  constructor(changed) {
    this.#changed = changed;
    const wait = element('p', { className: 'wait' }, element('span'), element('span'), element('span'));
    this.node = element('article', { className: 'answer growing', 'aria-live': 'off', 'aria-busy': 'true' });
    this.node.append(this.#tools, this.#body, wait);
  }

  get begun() {
    return this.#text !== '' || this.#calls.size > 0;
  }

  write(text) {
    this.#text += text;
    this.#draw();
  }

  discard() {
    this.#text = '';
    this.#draw();
  }

  toolStarted(call, label) {
    const line = element('li', { className: 'running' }, `${label}…`);
    this.#calls.set(call, line);
    this.#tools.append(line);
    this.#changed();
  }

  toolEnded(call, summary) {
    const line = toolLine(summary);
    this.#calls.get(call)?.replaceWith(line);
    this.#calls.set(call, line);
  }

  /** Ends the answer as it is. */
  stop() {
    this.#draw();
    for (const line of this.#tools.querySelectorAll('.running')) line.remove();
    this.node.classList.remove('growing');
    this.node.removeAttribute('aria-busy');
    if (!this.begun) this.node.remove();
  }

  /** At most once per frame. */
  #draw() {
    if (!this.#drawn) return;
    this.#drawn = false;
    requestAnimationFrame(() => {
      this.#drawn = true;
      this.#body.replaceChildren(markdown(this.#text));
      this.#changed();
    });
  }
}

function completed({ message, tool_calls: calls, looked_up: lookedUp, citations }) {
  const node = element('article', { className: 'answer' }, title('Tribune answered'));
  if (calls?.length > 0) {
    node.append(element('ul', { className: 'tools' }, ...calls.map(toolLine)));
  }
  node.append(element('div', { className: 'body' }, markdown(message)));
  if (lookedUp === false) {
    node.append(element('p', { className: 'quiet unchecked' }, 'Nothing was looked up for this answer.'));
  }
  const links = (citations ?? []).map(citation).filter((link) => link !== null);
  if (links.length > 0) {
    const list = element('ol', {}, ...links.map((link) => element('li', {}, link)));
    node.append(element('div', { className: 'citations' }, element('h4', {}, 'Sources'), list));
  }
  return node;
}

function kept({ role, content, looked_up: lookedUp }) {
  if (role === 'assistant') return completed({ message: content, looked_up: lookedUp });
  return element('article', { className: 'question' }, title('You said'), element('p', {}, content));
}

function citation({ title: text, url }) {
  const href = safeAddress(url);
  return href && element('a', { href, rel: 'noreferrer noopener' }, text || href);
}

function toolLine(call) {
  const state = stateOf(call);
  const outcome = outcomeOf(call);
  const words = element('span', {}, call.label);
  if (outcome) words.append(': ', element('span', { className: 'outcome' }, outcome));
  return element('li', { className: state }, words);
}

/** A heading for screen readers, for moving between messages. */
function title(text) {
  return element('h3', { className: 'unseen' }, text);
}

function buttons(actions, pressed) {
  return actions.map(([label, action]) => {
    const button = element('button', { type: 'button' }, label);
    button.addEventListener('click', () => {
      pressed();
      action();
    });
    return button;
  });
}
