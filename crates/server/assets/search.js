// Results while typing. The form also works without this script.

const form = document.querySelector('form.search');
const input = form?.querySelector('input');
const WAIT = 150;
const MOST = 8;

/** An element with a class and children; strings are text. */
function made(name, className, ...content) {
  const element = document.createElement(name);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

if (input) begin();

function begin() {
  const list = made('div', 'instant');
  list.hidden = true;
  const status = made('p', 'unseen');
  status.setAttribute('role', 'status');
  form.append(list, status);
  let asking = null;
  let timer = 0;

  function close() {
    list.hidden = true;
    status.textContent = '';
    asking?.abort();
    clearTimeout(timer);
  }

  function show(query, found) {
    const hits = (found.results ?? []).slice(0, MOST);
    const items = hits.map((hit) => {
      const link = made('a', '', made('strong', '', hit.title), made('span', '', hit.text ?? ''), made('code', '', hit.id));
      link.href = hit.href;
      return link;
    });
    // Words match only when they are complete.
    if (items.length === 0) items.push(made('p', 'soft', `Nothing found for “${query}” so far.`));
    for (const { source, reason } of found.missing ?? []) items.push(made('p', 'problem', `${source} could not answer: ${reason}`));
    list.replaceChildren(...items);
    list.hidden = false;
    status.textContent = `${hits.length} ${hits.length === 1 ? 'result' : 'results'}; arrow down goes to them`;
  }

  function fail(message) {
    list.replaceChildren(made('p', 'problem', message ?? 'Search failed; press Enter to open the results page.'));
    list.hidden = false;
  }

  async function ask() {
    const query = input.value.trim();
    asking?.abort();
    if (!query) return close();
    asking = new AbortController();
    const { signal } = asking;
    try {
      const address = new URL(form.action);
      address.searchParams.set('q', query);
      const answer = await fetch(address, { headers: { accept: 'application/json' }, signal });
      const found = await answer.json();
      if (signal.aborted) return;
      if (answer.ok) show(query, found);
      else fail(found.error?.message);
    } catch (error) {
      if (!signal.aborted) close();
    }
  }

  input.addEventListener('input', () => {
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT);
  });
  form.addEventListener('keydown', (event) => {
    const links = [...list.querySelectorAll('a')];
    const at = links.indexOf(document.activeElement);
    if (event.key === 'Escape') {
      close();
      input.focus();
    } else if (!list.hidden && event.key === 'ArrowDown' && links[at + 1]) {
      links[at + 1].focus();
    } else if (!list.hidden && event.key === 'ArrowUp' && at >= 0) {
      (links[at - 1] ?? input).focus();
    } else {
      return;
    }
    event.preventDefault();
  });
  addEventListener('click', (event) => {
    if (!form.contains(event.target)) close();
  });
}
