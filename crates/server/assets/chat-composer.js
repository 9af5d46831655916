// Where messages are written.

import { byId } from './chat-dom.js';

const MAX_CHARS = 4000;
/** From here on it is said how many are left. */
const COUNT_FROM = 3600;

export class Composer {
  #form = byId('composer');
  #field = byId('message');
  #send = byId('send');
  #stop = byId('stop');
  #count = byId('count');
  #busy = false;

  /** `say(text)` is called with each message, `stop()` when the answer is not to be waited for. */
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
      // Enter also ends the input of a Japanese or Chinese word.
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

  /** Writing goes on while an answer is made; sending waits. */
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

  /** Counted as the server counts: whole characters, not halves of an emoji. */
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
