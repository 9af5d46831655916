// Keeps a page up to date: the server says which parts have become others, and what they are now.

import { build, patch } from './patch.js';

const subject = document.querySelector('[data-live]');
const state = document.querySelector('#live-state');
const button = document.querySelector('#live-pause');
/** Browsers open six connections to a server at most, and other pages need some: so many pages hold a stream, ... */
const STREAMS = 3;
/** ... and the others ask again and again. */
const PERIOD = 4000;

let isPaused = false;
/** Ends what was begun last; null while nothing is. */
let stop = null;

function say(words, tone) {
  if (!state || state.textContent === words) return;
  state.textContent = words;
  state.className = `badge ${tone}`;
}

/** Panels come, change and go with what the server shows: none may stay that is no longer there. */
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

/** One of the places for streams that all pages of this browser share: a way to give it back, or null. */
async function takePlace() {
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
    // The browser tries again by itself unless it was refused.
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
  const release = await takePlace();
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
// A page that nobody sees costs nothing.
document.addEventListener('visibilitychange', () => (document.hidden ? leave() : follow()));
addEventListener('pagehide', leave);
addEventListener('pageshow', follow);
follow();
