// The message field.

import { byId } from './chat-dom.js';

const MAX_CHARS = 4000;
/** From here on the remaining characters are shown. */
const COUNT_FROM = 3600;

export class Composer {
  #form = byId('composer');
  #field = byId('message');
  #send = byId('send');
  #stop = byId('stop');
  #count = byId('count');
  #busy = false;

  /** Calls `say(text)` with each message, and `stop()` when the user stops waiting. */
  constructor(say, stop) {
    const submit = () => {
      const text = this.#field.value.trim();
      if (this.#busy || text === '' || this.#left() < 0) return;
      this.text = '';
      say(text);
    };
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      submit();
    });
    this.#field.addEventListener('keydown', (event) => {
      // Enter also confirms a word in a Japanese or Chinese input method.
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      submit();
    });
    this.#field.addEventListener('input', () => this.#changed());
    this.#stop.addEventListener('click', stop);
    this.#changed();
  }

  set text(text) {
    this.#field.value = text;
    this.#changed();
  }

  get empty() {
    return this.#field.value.trim() === '';
  }

  /** The user can write during a turn, but not send. */
  set busy(busy) {
    const focused = document.activeElement === this.#stop || document.activeElement === this.#send;
    this.#busy = busy;
    this.#stop.hidden = !busy;
    this.#send.hidden = busy;
    this.#changed();
    if (focused) this.focus();
  }

  focus() {
    this.#field.focus({ preventScroll: true });
  }

  /** Counts code points, as the server does. */
  #left() {
    return MAX_CHARS - [...this.#field.value.trim()].length;
  }

  #changed() {
    const left = this.#left();
    this.#send.disabled = this.#busy || left < 0 || this.empty;
    const near = MAX_CHARS - left >= COUNT_FROM;
    this.#count.textContent = near ? countText(left) : '';
    this.#count.classList.toggle('over', left < 0);
    this.#field.style.height = 'auto';
    this.#field.style.height = `${this.#field.scrollHeight}px`;
  }
}

function countText(left) {
  const number = Math.abs(left).toLocaleString('en');
  const characters = Math.abs(left) === 1 ? 'character' : 'characters';
  return left < 0 ? `${number} ${characters} too many` : `${number} ${characters} left`;
}
