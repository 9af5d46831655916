// Every page except the chat in a real browser, wide and narrow, light and dark.
//
//     node tests/page/pages.spec.mjs OUT_DIR PLAN
//
// PLAN is a JSON file with `base`, `signIn` (a link that signs in) and `pages`. Each page has a `name`, a `path`, and words that must be `seen` on it;
// `live`, `frozen`, `chart`, `hostile` and `passage` are further checks, `status` is the expected status if it is not 200.
// `search` has a query and the id of its first result. OUT_DIR receives screenshots of all pages.
// Prints one line per check; the exit code is 0 only if all passed.

import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { VIEWS, Watch, check, finish, openTab, sound, withBrowser } from './browser.mjs';

const [out, planFile] = process.argv.slice(2);
assert(planFile, 'usage: node pages.spec.mjs OUT_DIR PLAN');
const plan = JSON.parse(await readFile(planFile, 'utf8'));
const address = (path) => plan.base + path;
/** What a page may weigh with everything it loads, without what charts are made of. */
const MAX_BYTES = 100_000;

/** Every page is looked at in every view; what takes its time is tried in two of them. */
const isTried = ({ name }) => name === 'wide-light' || name === 'narrow-dark';

/** Counts what a tab is sent. */
class Weight {
  #bodies = [];

  constructor(page) {
    page.on('response', (response) => {
      const isStream = response.headers()['content-type']?.startsWith('text/event-stream');
      const sizes = () => response.request().sizes();
      // The size on the wire; an open stream has none.
      if (!isStream) this.#bodies.push(sizes().then(({ responseBodySize }) => responseBodySize, () => 0));
    });
  }

  async bytes() {
    const sizes = await Promise.all(this.#bodies.splice(0));
    return sizes.reduce((sum, size) => sum + size, 0);
  }
}

/** Opens a page, and holds it to what every page must be. */
async function checkPage(tab, view, weight, { name, path, seen = [], status = 200 }) {
  await check(`${view.name} ${name}: opens, is sound, and is light`, async () => {
    await weight.bytes();
    const response = await tab.goto(address(path));
    assert.equal(response.status(), status);
    await tab.waitForLoadState('load');
    const main = await tab.locator('main').innerText();
    for (const words of seen) assert(main.includes(words), `“${words}” is not on the page:\n${main.slice(0, 2000)}`);
    const charts = await tab.evaluate(() => {
      const drawn = [...document.querySelectorAll('main svg')];
      return drawn.reduce((sum, svg) => sum + new TextEncoder().encode(svg.outerHTML).length, 0);
    });
    const bytes = (await weight.bytes()) - charts;
    assert(bytes < MAX_BYTES, `${bytes} bytes`);
    assert.equal(await tab.locator('h1').count(), 1, 'one first heading');
    await sound(tab, join(out, `${name}-${view.name}.png`), { fullPage: true });
  });
}

/** A page that follows a market changes by itself, can be paused, and says how it is. */
async function checkLive(tab, view, { name, path }) {
  await check(`${view.name} ${name}: changes by itself until it is paused`, async () => {
    await tab.goto(address(path));
    const state = tab.locator('#live-state');
    await state.filter({ hasText: /^updating$/ }).waitFor();
    const text = () => tab.locator('article').innerText();
    const before = await text();
    await tab.waitForFunction((was) => document.querySelector('article').innerText !== was, before);
    await tab.getByRole('button', { name: 'Pause' }).click();
    await state.filter({ hasText: 'paused' }).waitFor();
    const paused = await text();
    await tab.waitForTimeout(2500);
    assert.equal(await text(), paused, 'nothing changes while it is paused');
    await tab.getByRole('button', { name: 'Resume' }).click();
    await state.filter({ hasText: /^updating$/ }).waitFor();
  });
}

/** What a stream sends is built in the browser into exactly what the server writes into the page. */
async function checkBuilt(tab, view) {
  await check(`${view.name} home: what is streamed is what is written`, async () => {
    await tab.goto(address('/'));
    const isSame = await tab.evaluate(async () => {
      const { patch } = await import('/assets/patch.js');
      const written = document.querySelector('[data-region=sources]');
      const stream = new EventSource('/live');
      const event = await new Promise((resolve) => stream.addEventListener('regions', resolve, { once: true }));
      stream.close();
      const built = document.createElement(written.localName);
      patch(built, JSON.parse(event.data).changed.sources);
      return built.isEqualNode(written);
    });
    assert(isSame);
  });
}

async function checkFrozen(tab, view, { name, path }) {
  await check(`${view.name} ${name}: does not change, and leads to now`, async () => {
    await tab.goto(address(path));
    const text = () => tab.locator('article').innerText();
    const before = await text();
    assert.match(before, /As cited on/);
    await tab.waitForTimeout(2500);
    assert.equal(await text(), before);
    await tab.getByRole('link', { name: 'See it now' }).click();
    await tab.locator('[data-live]').waitFor();
    assert.doesNotMatch(await text(), /As cited on/);
  });
}

async function checkChart(tab, view, { name, path }) {
  await check(`${view.name} ${name}: has a chart`, async () => {
    await tab.goto(address(path));
    const drawn = await tab.locator('[data-region^="panel-"] svg').evaluateAll((charts) => charts.map((chart) => chart.getBoundingClientRect()).filter(({ width, height }) => width > 200 && height > 50).length);
    assert(drawn > 0, 'no chart on the page');
  });
}

/** The document that is nothing but injections. */
async function checkHostile(tab, view, { name, path }) {
  await check(`${view.name} ${name}: what is in a document stays text`, async () => {
    await tab.goto(address(path));
    await tab.waitForTimeout(300);
    const found = await tab.evaluate(() => ({
      ran: window.pwned,
      made: [...document.querySelectorAll('article :is(script, img, iframe, object, embed, style, form, input, svg, video, meta, link, base)')].map((node) => node.outerHTML),
      handlers: [...document.querySelectorAll('article *')].filter((node) => [...node.attributes].some((attribute) => attribute.name.startsWith('on') || attribute.name === 'style')).length,
      links: [...document.querySelectorAll('article a')].map((link) => link.protocol).filter((protocol) => !['http:', 'https:', 'mailto:'].includes(protocol)),
      mains: document.querySelectorAll('main').length,
    }));
    assert.deepEqual(found, { ran: undefined, made: [], handlers: 0, links: [], mains: 1 });
    const text = await tab.locator('article').innerText();
    for (const told of ['<script>', 'onerror=', '</main>']) assert(text.includes(told), `${told} is shown as text`);
  });
}

async function checkPassage(tab, view, { name, path }) {
  await check(`${view.name} ${name}: the cited passage is marked and in sight`, async () => {
    await tab.goto(address(path));
    const mark = tab.locator('mark').first();
    await mark.waitFor();
    await tab.waitForFunction(() => {
      const { top } = document.querySelector('mark').getBoundingClientRect();
      return top >= 0 && top < innerHeight;
    });
  });
}

async function checkSearch(tab, view) {
  await check(`${view.name} home: results come while typing, and the keyboard reaches them`, async () => {
    await tab.goto(address('/'));
    const input = tab.locator('form.search input');
    await input.pressSequentially(plan.search.query, { delay: 20 });
    const first = tab.locator('.instant a').first();
    // Results for the first letters arrive earlier.
    await first.filter({ hasText: plan.search.first }).waitFor();
    await sound(tab, join(out, `instant-${view.name}.png`));
    await input.press('ArrowDown');
    assert(await first.evaluate((link) => link === document.activeElement));
    await tab.keyboard.press('Escape');
    await tab.locator('.instant').waitFor({ state: 'hidden' });
    await input.press('Enter');
    await tab.getByRole('heading', { level: 1, name: 'Results for' }).waitFor();
  });
}

async function checkCopy(tab, view) {
  await check(`${view.name} home: what is to be pasted can be copied`, async () => {
    await tab.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await tab.goto(address('/'));
    const guide = tab.locator('.guide', { hasText: 'Claude Code' });
    await guide.getByRole('button').click();
    await guide.getByText('Copied').waitFor();
    const pasted = await tab.evaluate(() => navigator.clipboard.readText());
    assert.equal(pasted.trim(), `claude mcp add --transport http tribune ${plan.base}/mcp`);
  });
}

async function checkTry(tab, view) {
  await check(`${view.name} try: a form is filled and answered, and its address does it again`, async () => {
    await tab.goto(address('/try/default/search'));
    await tab.locator('[name=query]').fill(plan.search.query);
    await tab.locator('main form button.main').click();
    await tab.locator('.try-answer').waitFor();
    assert(tab.url().includes('query='), tab.url());
    assert((await tab.locator('.try-answer').innerText()).includes(plan.search.first));
    await sound(tab, join(out, `try-answer-${view.name}.png`), { fullPage: true });
    await tab.reload();
    assert((await tab.locator('.try-answer').innerText()).includes(plan.search.first));
  });
  await check(`${view.name} try: what changes something asks first`, async () => {
    const title = `Try it, ${view.name}`;
    const listed = async () => {
      await tab.goto(address('/try/default/list_tasks?limit=100'));
      return tab.locator('.try-answer').innerText();
    };
    await tab.goto(address(`/try/default/add_task?title=${encodeURIComponent(title)}`));
    assert.equal(await tab.locator('[name=title]').inputValue(), title);
    assert(!(await listed()).includes(title), 'an address alone changes nothing');
    await tab.goto(address(`/try/default/add_task?title=${encodeURIComponent(title)}`));
    await tab.locator('main form button.main').click();
    await tab.getByText('This changes data').waitFor();
    await sound(tab, join(out, `try-asks-${view.name}.png`), { fullPage: true });
    await tab.getByRole('button', { name: 'Run it' }).click();
    await tab.locator('.try-answer').waitFor();
    assert((await listed()).includes(title));
  });
}

/** More live pages than a browser opens connections: all of them load, and all of them go on. */
async function checkMany(browser, view) {
  await check(`${view.name}: eight live pages at once`, async () => {
    const first = await openTab(browser, view, plan.signIn);
    const live = plan.pages.find((page) => page.live);
    const tabs = [first];
    while (tabs.length < 8) tabs.push(await first.context().newPage());
    for (const tab of tabs) {
      await tab.goto(address(live.path));
      await tab.locator('#live-state', { hasText: /^updating$/ }).waitFor();
    }
    for (const tab of tabs) {
      const before = await tab.locator('article').innerText();
      await tab.waitForFunction((was) => document.querySelector('article').innerText !== was, before);
    }
    await first.context().close();
  });
}

async function checkWithoutScripts(browser, view) {
  const context = await browser.newContext({ viewport: view, colorScheme: view.scheme, javaScriptEnabled: false });
  const tab = await context.newPage();
  await tab.goto(plan.signIn);
  for (const { name, path, seen = [], status = 200 } of plan.pages) {
    await check(`${view.name} ${name}: reads without scripts`, async () => {
      const response = await tab.goto(address(path));
      assert.equal(response.status(), status);
      const main = await tab.locator('main').innerText();
      for (const words of seen) assert(main.includes(words), `“${words}” is not on the page`);
    });
  }
  await context.close();
}

await mkdir(out, { recursive: true });
await withBrowser([], async (browser) => {
  for (const view of VIEWS) {
    const tab = await openTab(browser, view, plan.signIn);
    const watch = new Watch(tab, plan.base, (message) => /status of (404|410)/.test(message.text()));
    const weight = new Weight(tab);
    for (const page of plan.pages) {
      await checkPage(tab, view, weight, page);
      if (page.live && isTried(view)) await checkLive(tab, view, page);
      if (page.frozen && isTried(view)) await checkFrozen(tab, view, page);
      if (page.chart && isTried(view)) await checkChart(tab, view, page);
      if (page.hostile) await checkHostile(tab, view, page);
      if (page.passage) await checkPassage(tab, view, page);
    }
    if (isTried(view)) {
      await checkBuilt(tab, view);
      await checkCopy(tab, view);
    }
    await checkSearch(tab, view);
    await checkTry(tab, view);
    await watch.check(view.name);
    await tab.context().close();
  }
  await checkMany(browser, VIEWS[0]);
  await checkWithoutScripts(browser, VIEWS[0]);
});
finish();
