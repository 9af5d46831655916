// Keeps a page up to date: the server sends the regions that changed.

import { build, patch } from './patch.js';

const subject = document.querySelector('[data-live]');
const state = document.querySelector('#live-state');
const button = document.querySelector('#live-pause');
/** Browsers allow six connections to a server: this many pages hold a stream ... */
const STREAMS = 3;
/** ... and the others poll. */
const PERIOD = 4000;

let isPaused = false;
/** Stops the current stream or poll; null if there is none. */
let stop = null;

function say(words, tone) {
  if (!state || state.textContent === words) return;
  state.textContent = words;
  state.className = `badge ${tone}`;
}

/** Adds, changes and removes panels. */
function show({ keys, changed }) {
  for (const region of document.querySelectorAll('[data-region]')) {
    if (!keys.includes(region.dataset.region)) region.remove();
  }
  for (const [key, tree] of Object.entries(changed)) {
    const region = document.querySelector(`[data-region="${CSS.escape(key)}"]`);
    if (region) patch(region, tree);
    else document.querySelector('.board')?.append(build(tree));
  }
}

function take(name, data) {
  if (name === 'trouble') return say(`not live: ${JSON.parse(data)}`, 'bad');
  show(JSON.parse(data));
  say('updating', '');
}

/** Takes one of the stream slots that all pages of this browser share; returns its release function, or null. */
async function takeSlot() {
  if (!navigator.locks) return () => {};
  for (let number = 0; number < STREAMS; number += 1) {
    const release = await new Promise((resolve) => {
      navigator.locks.request(`tribune-live-${number}`, { ifAvailable: true }, (lock) => {
        if (!lock) return resolve(null);
        return new Promise((free) => resolve(free));
      });
    });
    if (release) return release;
  }
  return null;
}

function stream() {
  const source = new EventSource(subject.dataset.live);
  for (const name of ['regions', 'trouble']) source.addEventListener(name, (event) => take(name, event.data));
  source.addEventListener('error', () => {
    // The browser reconnects unless it was refused.
    const isOver = source.readyState === EventSource.CLOSED;
    say(isOver ? 'not live: reload to try again' : 'not live: the connection is lost, trying again', 'bad');
  });
  return () => source.close();
}

function poll() {
  const ending = new AbortController();
  const { signal } = ending;
  const ask = async () => {
    try {
      const answer = await fetch(`${subject.dataset.live}?once=1`, { signal });
      const event = (await answer.text()).match(/^event: (\w+)\ndata: (.*)$/m);
      if (event) take(event[1], event[2]);
      else say('not live: the server is busy, trying again', 'bad');
    } catch {
      if (!signal.aborted) say('not live: the connection is lost, trying again', 'bad');
    }
    if (!signal.aborted) timer = setTimeout(ask, PERIOD);
  };
  let timer = setTimeout(ask);
  return () => {
    clearTimeout(timer);
    ending.abort();
  };
}

async function follow() {
  if (stop || isPaused || document.hidden) return;
  let isOver = false;
  stop = () => {
    isOver = true;
  };
  const release = await takeSlot();
  if (isOver) return release?.();
  const end = release ? stream() : poll();
  stop = () => {
    end();
    release?.();
  };
}

function leave() {
  stop?.();
  stop = null;
}

button?.addEventListener('click', () => {
  isPaused = !isPaused;
  button.textContent = isPaused ? 'Resume' : 'Pause';
  if (isPaused) {
    leave();
    say('paused', 'warning');
  } else {
    follow();
  }
});
// Hidden pages do not stream.
document.addEventListener('visibilitychange', () => (document.hidden ? leave() : follow()));
addEventListener('pagehide', leave);
addEventListener('pageshow', follow);
follow();
