// Keeps a page up to date: the server says which parts have become others, and what they are now.

import { build, patch } from './patch.js';

const subject = document.querySelector('[data-live]');
const state = document.querySelector('#live-state');
const button = document.querySelector('#live-pause');
let source = null;
let isPaused = false;

function say(words, tone) {
  if (!state || state.textContent === words) return;
  state.textContent = words;
  state.className = `badge ${tone}`;
}

const regionOf = (key) => document.querySelector(`[data-region="${CSS.escape(key)}"]`);

/** Panels come, change and go with what the server shows: none may stay that is no longer there. */
function show({ keys, changed }) {
  for (const region of document.querySelectorAll('[data-region]')) {
    if (!keys.includes(region.dataset.region)) region.remove();
  }
  for (const [key, tree] of Object.entries(changed)) {
    const region = regionOf(key);
    if (region) patch(region, tree);
    else document.querySelector('.board')?.append(build(tree));
  }
}

function follow() {
  if (source || isPaused || document.hidden) return;
  source = new EventSource(subject.dataset.live);
  source.addEventListener('regions', (event) => {
    show(JSON.parse(event.data));
    say('updating', '');
  });
  source.addEventListener('trouble', (event) => say(`not live: ${JSON.parse(event.data)}`, 'bad'));
  source.addEventListener('error', () => {
    // The browser tries again by itself unless it was refused.
    const isOver = source?.readyState === EventSource.CLOSED;
    say(isOver ? 'not live: reload to try again' : 'not live: the connection is lost, trying again', 'bad');
  });
}

function leave() {
  source?.close();
  source = null;
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
