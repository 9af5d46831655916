// Builds DOM nodes. Text stays text: the chat never parses HTML.

/** An element with properties and children; a child that is a string becomes text. */
export function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in node) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export const byId = (id) => document.getElementById(id);

/** An http, https or relative address; `null` for anything else. */
export function safeAddress(address) {
  try {
    const url = new URL(address, document.baseURI);
    return url.protocol === 'https:' || url.protocol === 'http:' ? url.href : null;
  } catch {
    return null;
  }
}

/** `the model is busy` → `The model is busy.` */
export function sentence(text) {
  const trimmed = text.trim();
  const ended = /[.!?…]$/.test(trimmed) ? trimmed : `${trimmed}.`;
  return ended.charAt(0).toUpperCase() + ended.slice(1);
}

/** `5 minutes ago`, `yesterday`; the date if it is older than a week. */
export function ago(when, now = new Date()) {
  const seconds = (now - when) / 1000;
  if (!Number.isFinite(seconds)) return '';
  if (seconds < 60) return 'just now';
  const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
  if (seconds < 3600) return relative.format(-Math.floor(seconds / 60), 'minute');
  const days = Math.round((startOfDay(now) - startOfDay(when)) / 86_400_000);
  if (days === 0) return relative.format(-Math.floor(seconds / 3600), 'hour');
  return days < 7 ? relative.format(-days, 'day') : shortDate(when, now);
}

export function shortDate(when, now = new Date()) {
  const year = when.getFullYear() === now.getFullYear() ? undefined : 'numeric';
  return when.toLocaleDateString('en', { day: 'numeric', month: 'short', year });
}

export function startOfDay(when) {
  return new Date(when.getFullYear(), when.getMonth(), when.getDate());
}
