// Renders Markdown of models as DOM nodes. Unknown syntax and all HTML stay text, because an answer may quote any
// document.

import { element, safeAddress } from './chat-dom.js';

/** Deeper nesting is shown as text. */
const MAX_DEPTH = 8;
const MAX_LINK_TEXT = 500;
const MAX_ADDRESS = 2000;

const FENCE = /^ {0,3}(`{3,}|~{3,})[ \t]*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})[ \t]+(.*)$/;
const RULE = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const QUOTE = /^ {0,3}> ?/;
/** An address with an optional title, which is ignored. */
const TARGET = /^(\S+)(?:\s+(?:"[^"]*"|'[^']*'))?$/;
const ITEM = /^([ \t]*)([-*+•]|\d{1,9}[.)])[ \t]+(.*)$/;

/** Renders `text`. */
export function markdown(text) {
  const fragment = document.createDocumentFragment();
  fragment.append(...blocks(text.replace(/\r\n?/g, '\n').split('\n'), 0));
  return fragment;
}

function blocks(lines, depth) {
  if (depth > MAX_DEPTH) return [element('p', {}, lines.join('\n'))];
  const nodes = [];
  let at = 0;
  while (at < lines.length) {
    if (lines[at].trim() === '') {
      at += 1;
      continue;
    }
    const read = [code, heading, rule, quote, table, list].find((reader) => reader.begins(lines, at)) ?? paragraph;
    const [node, next] = read(lines, at, depth);
    nodes.push(node);
    at = next;
  }
  return nodes;
}

function code(lines, at) {
  const [, fence, language] = FENCE.exec(lines[at]);
  const ends = (line) => line.trim().startsWith(fence) && line.trim().replaceAll(fence[0], '') === '';
  let end = at + 1;
  while (end < lines.length && !ends(lines[end])) end += 1;
  const text = lines.slice(at + 1, end).join('\n');
  const label = language ? `Code: ${language}` : 'Code';
  // Focusable, so that keyboard users can scroll it.
  const node = element('pre', { tabIndex: 0, role: 'group', 'aria-label': label }, element('code', {}, text));
  return [node, end + 1];
}
code.begins = (lines, at) => FENCE.test(lines[at]);

function heading(lines, at) {
  const [, marks, text] = HEADING.exec(lines[at]);
  // Below the headings of the page.
  const level = Math.min(6, marks.length + 3);
  return [element(`h${level}`, {}, ...inline(text.trimEnd().replace(/[ \t]#+$/, ''))), at + 1];
}
heading.begins = (lines, at) => HEADING.test(lines[at]);

function rule(lines, at) {
  return [element('hr'), at + 1];
}
rule.begins = (lines, at) => RULE.test(lines[at]);

function quote(lines, at, depth) {
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const inner = lines.slice(at, end).map((line) => line.replace(QUOTE, ''));
  return [element('blockquote', {}, ...blocks(inner, depth + 1)), end];
}
quote.begins = (lines, at) => QUOTE.test(lines[at]);

function table(lines, at) {
  const alignments = cells(lines[at + 1]).map(alignment);
  let end = at + 2;
  while (end < lines.length && lines[end].includes('|')) end += 1;
  const row = (line, name) => {
    const texts = cells(line);
    return element('tr', {}, ...alignments.map((align, n) => {
      const cell = element(name, align ? { className: align } : {}, ...inline(texts[n] ?? ''));
      if (name === 'th') cell.scope = 'col';
      return cell;
    }));
  };
  const body = lines.slice(at + 2, end).map((line) => row(line, 'td'));
  const whole = element('table', {}, element('thead', {}, row(lines[at], 'th')), element('tbody', {}, ...body));
  return [element('div', { className: 'table', tabIndex: 0, role: 'group', 'aria-label': 'Table' }, whole), end];
}
table.begins = (lines, at) => {
  if (!lines[at].includes('|') || !lines[at + 1]?.includes('-')) return false;
  const divider = cells(lines[at + 1]);
  return divider.length === cells(lines[at]).length && divider.every((cell) => /^:?-+:?$/.test(cell));
};

function cells(line) {
  const trimmed = line.trim().replace(/^\|/, '').replace(/\|$/, '');
  return trimmed.split('|').map((cell) => cell.trim());
}

function alignment(divider) {
  if (!divider.endsWith(':')) return '';
  return divider.startsWith(':') ? 'centre' : 'right';
}

function list(lines, at, depth) {
  const [, , first] = ITEM.exec(lines[at]);
  const ordered = /\d/.test(first);
  const edge = indent(lines[at]);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const marked = ITEM.exec(lines[end]);
    if (lines[end].trim() === '') {
      // A list continues after an empty line if the next line belongs to it.
      const next = lines[end + 1] ?? '';
      const goesOn = next.trim() !== '' && (indent(next) > edge || (ITEM.test(next) && indent(next) === edge));
      if (!goesOn) break;
      items.at(-1).push('');
    } else if (marked && indent(lines[end]) <= edge) {
      if (/\d/.test(marked[2]) !== ordered || (items.length > 0 && indent(lines[end]) < edge)) break;
      items.push([marked[3]]);
    } else if (indent(lines[end]) > edge || !begins(lines, end)) {
      items.at(-1).push(lines[end]);
    } else {
      break;
    }
    end += 1;
  }
  const node = element(ordered ? 'ol' : 'ul', {}, ...items.map((item) => listItem(item, depth)));
  const start = Number.parseInt(first, 10);
  if (ordered && start !== 1) node.start = start;
  return [node, end];
}
list.begins = (lines, at) => ITEM.test(lines[at]);

function listItem([first, ...others], depth) {
  const inner = others.filter((line) => line.trim() !== '').map(indent);
  const edge = inner.length > 0 ? Math.min(...inner) : 0;
  const nodes = blocks([first, ...others.map((line) => line.slice(edge))], depth + 1);
  // Unwraps a leading paragraph.
  if (nodes[0]?.localName === 'p') nodes.splice(0, 1, ...nodes[0].childNodes);
  return element('li', {}, ...nodes);
}

function indent(line) {
  return line.length - line.trimStart().length;
}

function begins(lines, at) {
  return [code, heading, rule, quote, table, list].some((reader) => reader.begins(lines, at));
}

function paragraph(lines, at) {
  let end = at + 1;
  while (end < lines.length && lines[end].trim() !== '' && !begins(lines, end)) end += 1;
  const text = lines.slice(at, end).map((line) => line.trim()).join('\n');
  return [element('p', {}, ...inline(text)), end];
}

const EMPHASIS = [['**', 'strong'], ['__', 'strong'], ['~~', 's'], ['*', 'em'], ['_', 'em']];

/** Renders inline text. */
function inline(text, depth = 0) {
  const nodes = [];
  // Markers without an end, so that each is searched only once.
  const hopeless = new Set();
  let plain = '';
  const push = (node) => {
    if (plain !== '') nodes.push(plain);
    plain = '';
    nodes.push(node);
  };
  let at = 0;
  while (at < text.length) {
    const span = depth < MAX_DEPTH ? spanAt(text, at, depth, hopeless) : null;
    if (span === null) {
      plain += text[at];
      at += 1;
    } else {
      if (typeof span.node === 'string') plain += span.node;
      else push(span.node);
      at = span.end;
    }
  }
  if (plain !== '') nodes.push(plain);
  return nodes;
}

/** The span at `at` as `{node, end}`; `null` for a plain character. */
function spanAt(text, at, depth, hopeless) {
  switch (text[at]) {
    case '\n':
      return { node: element('br'), end: at + 1 };
    case '\\':
      return /[!-/:-@[-`{-~]/.test(text[at + 1] ?? '') ? { node: text[at + 1], end: at + 2 } : null;
    case '`':
      return codeSpan(text, at);
    case '!':
      // Images become links: they would load from any address.
      return text[at + 1] === '[' ? link(text, at + 1, depth) : null;
    case '[':
      return link(text, at, depth);
    case '<':
    case 'h':
      return bareLink(text, at);
    case '*':
    case '_':
    case '~':
      return emphasis(text, at, depth, hopeless);
    default:
      return null;
  }
}

function codeSpan(text, at) {
  let end = at;
  while (text[end] === '`') end += 1;
  const ticks = text.slice(at, end);
  let close = text.indexOf(ticks, end);
  while (close >= 0 && (text[close + ticks.length] === '`' || text[close - 1] === '`')) {
    close = text.indexOf(ticks, close + 1);
  }
  if (close < 0) return { node: ticks, end };
  const inner = text.slice(end, close).replaceAll('\n', ' ');
  return { node: element('code', {}, inner.trim() || inner), end: close + ticks.length };
}

function link(text, at, depth) {
  const close = matching(text, at, '[', ']', MAX_LINK_TEXT);
  if (close < 0 || text[close + 1] !== '(') return null;
  const end = matching(text, close + 1, '(', ')', MAX_ADDRESS);
  if (end < 0) return null;
  const [, address] = TARGET.exec(text.slice(close + 2, end).trim()) ?? [];
  const href = address ? safeAddress(address.replace(/^<(.*)>$/, '$1')) : null;
  if (href === null) return null;
  const label = text.slice(at + 1, close) || address;
  return { node: anchor(href, inline(label, depth + 1).map(withoutLink)), end: end + 1 };
}

/** Nested links become text. */
function withoutLink(node) {
  return node.localName === 'a' ? node.textContent : node;
}

function bareLink(text, at) {
  const bracketed = text[at] === '<';
  const from = bracketed ? at + 1 : at;
  const part = text.slice(from, from + MAX_ADDRESS);
  if (!/^https?:\/\/[^\s]/.test(part) || /\w/.test(text[at - 1] ?? '')) return null;
  const found = /^[^\s<>]+/.exec(part)[0];
  if (bracketed && part[found.length] !== '>') return null;
  const address = bracketed ? found : withoutEnding(found);
  const href = safeAddress(address);
  if (href === null) return null;
  return { node: anchor(href, [address]), end: from + address.length + (bracketed ? 1 : 0) };
}

/** Strips punctuation of the surrounding sentence. */
function withoutEnding(address) {
  const trimmed = address.replace(/[.,;:!?'"*_~]+$/, '');
  return trimmed.endsWith(')') && !trimmed.includes('(') ? trimmed.slice(0, -1) : trimmed;
}

function anchor(href, children) {
  return element('a', { href, rel: 'noreferrer noopener' }, ...children);
}

/** The index of the closing bracket within `limit` characters, or -1. */
function matching(text, at, open, close, limit) {
  let depth = 0;
  const last = Math.min(text.length, at + limit);
  for (let end = at; end < last; end += 1) {
    if (text[end] === '\\') end += 1;
    else if (text[end] === open) depth += 1;
    else if (text[end] === close) {
      depth -= 1;
      if (depth === 0) return end;
    }
  }
  return -1;
}

function emphasis(text, at, depth, hopeless) {
  for (const [marker, name] of EMPHASIS) {
    if (!text.startsWith(marker, at) || hopeless.has(marker)) continue;
    const from = at + marker.length;
    if (/[\s]|^$/.test(text[from] ?? '')) continue;
    if (marker[0] === '_' && /[\p{L}\p{N}]/u.test(text[at - 1] ?? '')) continue;
    const close = closing(text, from, marker);
    if (close < 0) {
      hopeless.add(marker);
      continue;
    }
    const node = element(name, {}, ...inline(text.slice(from, close), depth + 1));
    return { node, end: close + marker.length };
  }
  return null;
}

function closing(text, from, marker) {
  const mark = marker[0];
  for (let end = text.indexOf(marker, from + 1); end >= 0; end = text.indexOf(marker, end + 1)) {
    const after = text[end + marker.length] ?? '';
    if (/\s/.test(text[end - 1]) || text[end - 1] === '\\') continue;
    // A single star does not match one of a pair.
    if (marker.length === 1 && (after === mark || text[end - 1] === mark)) continue;
    if (marker.length === 2 && after === mark) continue;
    if (mark === '_' && /[\p{L}\p{N}]/u.test(after)) continue;
    return end;
  }
  return -1;
}
