// The chat on the start page: one conversation at a time.

import { Api, Failure, requestId } from './chat-api.js';
import { Composer } from './chat-composer.js';
import { Conversations } from './chat-conversations.js';
import { byId, sentence } from './chat-dom.js';
import { Log } from './chat-log.js';
import { Panels } from './chat-panels.js';
import { offerSignIn, offerSignOut } from './chat-session.js';

const MESSAGES_PAGE = 50;
/** How often, and how many times, to ask for an answer that is still in progress. */
const PATIENCE_MS = 1_500;
const MAX_ASKED = 60;

class Chat {
  #api;
  #log = new Log(byId('log'), byId('newest'));
  #composer = byId('composer') && new Composer((text) => this.say(text), () => this.#stop());
  #conversations;
  #panels;
  /** What sources show beside the chat. */
  #extras = [];
  #conversation = null;
  /** Whether the server stores it: a new conversation whose first answer fails is not stored. */
  #kept = false;
  /** Aborts showing the current answer. */
  #turn = null;

  constructor(api, root) {
    this.#api = api;
    this.#panels = new Panels(root);
    this.#conversations = new Conversations(api, (id) => this.#choose(id));
    byId('new-conversation')?.addEventListener('click', () => this.#choose(null));
    for (const button of document.querySelectorAll('.suggestions button')) {
      button.addEventListener('click', () => this.say(button.textContent));
    }
    document.addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && !event.isComposing && !this.#panels.close()) this.#stop();
    });
    addEventListener('popstate', () => this.#show(linked()));
  }

  async start() {
    await Promise.all([this.#show(linked()), this.#conversations.refresh(), this.#loadExtras()]);
  }

  async #loadExtras() {
    const names = [...document.querySelectorAll('[data-panel]')].map((node) => node.dataset.panel);
    const modules = await Promise.all(names.map((name) => import(`./panel-${name}.js`)));
    this.#extras = modules.map(({ Panel }) => new Panel(this.#api));
    await this.#refreshExtras();
  }

  #refreshExtras() {
    return Promise.all(this.#extras.map((extra) => extra.refresh()));
  }

  async say(message) {
    if (this.#turn) return;
    this.#log.withdrawOffers();
    await this.#send(message, { message });
  }

  /** Confirms or declines a call; returns false if an answer is still being written. */
  #decide({ id, question }, confirmed) {
    if (this.#turn) return false;
    const decision = confirmed ? { confirm: [id] } : { decline: [id] };
    this.#send(`${confirmed ? 'Yes' : 'No'}: ${question}`, decision);
    return true;
  }

  async #send(message, request) {
    request.request_id = requestId();
    // An empty page always starts a new conversation.
    if (this.#conversation) request.conversation_id = this.#conversation;
    else request.new_conversation = true;
    this.#showLog();
    this.#log.question(message);
    this.#composer.focus();
    await this.#ask(request);
  }

  /** Sends or repeats a request and shows the answer. */
  async #ask(request, repeated = false) {
    const turn = new AbortController();
    this.#turn = turn;
    this.#composer.busy = true;
    announce('Tribune is answering');
    const growing = this.#log.begin();
    try {
      const answer = await this.#receive(request, repeated, growing, turn.signal);
      this.#log.complete(growing, answer);
      this.#log.confirmations(answer.confirmations, (confirmation, yes) => this.#decide(confirmation, yes));
    } catch (error) {
      growing.stop();
      if (!turn.signal.aborted) this.#explain(error, request, growing);
      else if (turn.signal.reason === 'stopped') this.#offerAgain(request, growing);
    }
    announce('');
    if (this.#turn !== turn) return;
    this.#turn = null;
    this.#composer.busy = false;
    this.#conversations.refresh();
  }

  async #receive(request, repeated, growing, signal) {
    for await (const { name, data } of this.#events(request, repeated, signal)) {
      switch (name) {
        case 'started':
          this.#conversation = data.conversation_id;
          break;
        case 'delta':
          growing.write(data.text);
          break;
        case 'discard':
          growing.discard();
          break;
        case 'tool_start':
          growing.toolStarted(data.call, data.label);
          announce(`${data.label}…`);
          break;
        case 'tool_end':
          growing.toolEnded(data.call, data);
          announce(data.label);
          this.#refreshExtras();
          break;
        case 'answer':
          this.#keep(data.conversation_id);
          return data;
        case 'error':
          throw new Failure(sentence(data.error.message));
      }
    }
    throw new Failure('The connection broke before the answer was complete.');
  }

  async *#events(request, repeated, signal) {
    let asked = request;
    for (let tries = 1; ; tries += 1) {
      try {
        yield* this.#api.chat(asked, signal);
        return;
      } catch (error) {
        if (error.status === 404 && asked.conversation_id && !this.#kept) {
          asked = { message: asked.message, request_id: asked.request_id, new_conversation: true };
        } else if (error.status === 503 && repeated && tries < MAX_ASKED) {
          // The server is probably still working on the answer.
          await pause(PATIENCE_MS, signal);
        } else {
          throw error;
        }
      }
    }
  }

  /** Shows the error and offers a retry. */
  #explain(error, request, growing) {
    const known = error instanceof Failure;
    if (!known) console.warn(error);
    const message = known ? error.message : 'The answer is unreadable.';
    if (error.status === 401) {
      this.#log.note('You are signed out.', [['Sign in', () => location.reload()]], 'failed');
    } else if (!known || error.passing) {
      this.#log.note(message, [['Try again', () => this.#again(request, growing)]], 'failed');
    } else {
      this.#log.note(message, [], 'failed');
      if (this.#composer.empty) this.#composer.text = request.message ?? '';
    }
  }

  #offerAgain(request, growing) {
    const text = 'You stopped waiting. The answer is stored once it is complete.';
    this.#log.note(text, [['Show the answer', () => this.#again(request, growing)]]);
  }

  #again(request, growing) {
    if (this.#turn) return;
    growing.node.remove();
    this.#composer.focus();
    this.#ask(request, true);
  }

  #stop() {
    this.#turn?.abort('stopped');
  }

  /** The server stores the conversation: puts it into the address of the page. */
  #keep(id) {
    this.#conversation = id;
    this.#kept = true;
    this.#conversations.current = id;
    if (linked() !== id) history.pushState(null, '', addressOf(id));
  }

  async #choose(id) {
    this.#panels.close();
    history.pushState(null, '', addressOf(id));
    await this.#show(id);
    this.#composer?.focus();
  }

  /** Shows a conversation, or the empty page if `id` is `null`. */
  async #show(id) {
    this.#turn?.abort('left');
    this.#turn = null;
    if (this.#composer) this.#composer.busy = false;
    this.#conversation = id;
    this.#kept = id !== null;
    this.#conversations.current = id;
    this.#log.clear();
    if (id === null) {
      this.#showWelcome();
      return;
    }
    this.#showLog();
    try {
      const { items, next } = await this.#messages(id, { limit: MESSAGES_PAGE });
      if (this.#conversation !== id) return;
      if (next) this.#log.offerEarlier(() => this.#earlier(id, next));
      this.#log.history(items);
    } catch (error) {
      if (this.#conversation === id) this.#explainMissing(error, id);
    }
  }

  #explainMissing(error, id) {
    if (error.status === 404) {
      const text = 'This conversation does not exist.';
      this.#log.note(text, [['New conversation', () => this.#choose(null)]], 'failed');
    } else {
      this.#log.note(error.message, [['Try again', () => this.#show(id)]], 'failed');
    }
  }

  async #earlier(id, parameters) {
    const { items, next } = await this.#messages(id, parameters);
    if (this.#conversation === id) this.#log.earlier(items, next && (() => this.#earlier(id, next)));
  }

  #messages(id, parameters) {
    return this.#api.page(`/conversations/${encodeURIComponent(id)}/messages`, parameters);
  }

  #showLog() {
    byId('welcome').hidden = true;
    byId('log').hidden = false;
  }

  #showWelcome() {
    byId('welcome').hidden = false;
    byId('log').hidden = true;
  }
}

/** The conversation in the address of the page. */
function linked() {
  return new URLSearchParams(location.search).get('conversation');
}

function addressOf(id) {
  return id ? `?conversation=${encodeURIComponent(id)}` : location.pathname;
}

/** Waits, unless the signal aborts. */
function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}

/** Announces progress to screen readers. */
function announce(text) {
  byId('progress').textContent = text;
}

const root = byId('chat');
const api = new Api(root.dataset.base);
if (byId('sign-in')) {
  offerSignIn(api);
} else {
  offerSignOut(api);
  new Chat(api, root).start();
}
