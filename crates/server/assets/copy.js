// Buttons that copy text of the page: <button class="needs-script" data-copy="#id">Copy</button>.

const SHOWN_MS = 1600;

/** Announces to screen readers. */
const announcer = document.createElement('p');
announcer.className = 'unseen';
announcer.setAttribute('role', 'status');
document.body.append(announcer);

async function copy(button) {
  const source = document.querySelector(button.dataset.copy);
  if (!source) return;
  const text = 'value' in source ? source.value : source.textContent;
  // Without HTTPS or localhost there is no clipboard: select the text instead.
  const copied = await write(text);
  if (!copied) getSelection()?.selectAllChildren(source);
  say(button, copied ? 'Copied' : 'Selected');
}

async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function say(button, word) {
  button.dataset.label ??= button.textContent;
  clearTimeout(Number(button.dataset.timer));
  button.textContent = word;
  announcer.textContent = word;
  button.dataset.timer = setTimeout(() => {
    button.textContent = button.dataset.label;
    announcer.textContent = '';
  }, SHOWN_MS);
}

document.addEventListener('click', (event) => {
  const button = event.target.closest?.('button[data-copy]');
  if (button) copy(button);
});
