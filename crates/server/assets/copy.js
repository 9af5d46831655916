// Buttons that copy what stands elsewhere on the page: <button class="needs-script" data-copy="#id">Copy</button>.

const SHOWN_MS = 1600;

/** Told to screen readers, once for the page. */
const told = document.createElement('p');
told.className = 'unseen';
told.setAttribute('role', 'status');
document.body.append(told);

async function copy(button) {
  const source = document.querySelector(button.dataset.copy);
  if (!source) return;
  const text = 'value' in source ? source.value : source.textContent;
  // A page that is not served over HTTPS or from this machine has no clipboard: what is selected can be copied by hand.
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
  told.textContent = word;
  button.dataset.timer = setTimeout(() => {
    button.textContent = button.dataset.label;
    told.textContent = '';
  }, SHOWN_MS);
}

document.addEventListener('click', (event) => {
  const button = event.target.closest?.('button[data-copy]');
  if (button) copy(button);
});
