// Patches an element to match a tree, `[name, {attributes}, child, …]` or text. It changes only what differs, so that
// focus, scroll position and open details stay. Only listed elements are created.

const SVG = 'http://www.w3.org/2000/svg';
const SVG_NAMES = new Set(['svg', 'g', 'path', 'line', 'rect', 'circle', 'polyline', 'polygon', 'text', 'tspan', 'title', 'desc', 'defs', 'clipPath', 'pattern']);
const HTML_NAMES = new Set(
  'a b blockquote br button caption code dd del details div dl dt em figcaption figure h2 h3 h4 h5 h6 header hr i li ol p pre s section small span strong sub summary sup table tbody td tfoot th thead time tr ul'.split(' '),
);

function make(name, within) {
  if (SVG_NAMES.has(name) && (name === 'svg' || within.namespaceURI === SVG)) return document.createElementNS(SVG, name);
  if (HTML_NAMES.has(name)) return document.createElement(name);
  throw new Error(`a page has no element ${name}`);
}

function isSafe(name, value) {
  if (name === 'style' || name.startsWith('on')) return false;
  return name !== 'href' || value.startsWith('/') || value.startsWith('#') || /^https?:/.test(value);
}

/** Patches children in place, or replaces them. */
function patchChildren(element, children) {
  children.forEach((tree, at) => {
    const old = element.childNodes[at];
    if (typeof tree === 'string') {
      if (old?.nodeType === Node.TEXT_NODE) {
        if (old.data !== tree) old.data = tree;
      } else {
        place(element, document.createTextNode(tree), old);
      }
    } else if (old?.nodeType === Node.ELEMENT_NODE && old.localName === tree[0]) {
      patch(old, tree);
    } else {
      const made = make(tree[0], element);
      place(element, made, old);
      patch(made, tree);
    }
  });
  while (element.childNodes.length > children.length) element.lastChild.remove();
}

function place(element, made, old) {
  if (old) old.replaceWith(made);
  else element.append(made);
}

/** The element of a tree. */
export function build(tree) {
  const element = make(tree[0], document.body);
  patch(element, tree);
  return element;
}

export function patch(element, [, attributes, ...children]) {
  for (const { name } of [...element.attributes]) {
    // The reader decides which details are open.
    if (!(name in attributes) && name !== 'open') element.removeAttribute(name);
  }
  for (const [name, value] of Object.entries(attributes)) {
    if (isSafe(name, value) && element.getAttribute(name) !== value) element.setAttribute(name, value);
  }
  patchChildren(element, children);
}
