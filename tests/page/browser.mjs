// A real browser, a tab that records errors, and a counter of checks.

import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where `./test` has installed the packages. */
const packages = createRequire(new URL('../../.testenv/node/package.json', import.meta.url));
const { chromium } = packages('playwright-core');
const AXE = await readFile(packages.resolve('axe-core/axe.min.js'), 'utf8');

const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
/** How long a check waits before it reports a hang. */
export const PATIENCE = 120_000;

export const VIEWS = [
  { name: 'wide-light', width: 1280, height: 800, scheme: 'light' },
  { name: 'wide-dark', width: 1280, height: 800, scheme: 'dark' },
  { name: 'narrow-light', width: 390, height: 844, scheme: 'light' },
  { name: 'narrow-dark', width: 390, height: 844, scheme: 'dark' },
];

let passed = 0;
let failed = 0;

export async function check(name, work) {
  try {
    await work();
    passed += 1;
    console.log(`ok    ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${name}\n      ${String(error.stack ?? error).replaceAll('\n', '\n      ')}`);
  }
}

/** Says how it went, and ends with that. */
export function finish() {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}

/** Does something with a browser that has a home of its own: nothing of another run or of a person's is there. */
export async function withBrowser(flags, work) {
  const profile = await mkdtemp(join(tmpdir(), 'tribune-page-'));
  const executablePath = process.env.CHROMIUM ?? '/usr/bin/chromium';
  const args = [...FLAGS, ...flags];
  const browser = await chromium.launch({ executablePath, args, env: { ...process.env, HOME: profile } });
  try {
    await work(browser);
  } finally {
    await browser.close();
    await rm(profile, { recursive: true, force: true });
  }
}

/** A page at one size and in one colour, for one visitor. `signIn` is a link that signs the visitor in. */
export async function openTab(browser, view, signIn) {
  const context = await browser.newContext({
    viewport: { width: view.width, height: view.height },
    colorScheme: view.scheme,
    reducedMotion: view.scheme === 'dark' ? 'reduce' : 'no-preference',
    hasTouch: view.width < 600,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  if (signIn) await page.goto(signIn);
  return page;
}

/** What a tab does that it should not: errors on its console, and requests to other origins than `home`. */
export class Watch {
  problems = [];
  foreign = [];

  /** `expected(message)` tells the errors that a check brings about. */
  constructor(page, home, expected) {
    page.on('request', (request) => {
      const url = new URL(request.url());
      if (url.protocol !== 'data:' && url.origin !== new URL(home).origin) this.foreign.push(url.href);
    });
    page.on('console', (message) => {
      if (message.type() === 'error' && !expected(message)) this.problems.push(message.text());
    });
    page.on('pageerror', (error) => this.problems.push(String(error)));
  }

  async check(name) {
    await check(`${name}: nothing was written to the console as an error`, () => assert.deepEqual(this.problems, []));
    await check(`${name}: nothing was asked of another origin`, () => assert.deepEqual(this.foreign, []));
  }
}

/** Nothing may be wider than the page, nor hard to see or to hear; and a picture is taken. */
export async function sound(page, picture, { fullPage = false } = {}) {
  await page.screenshot({ path: picture, animations: 'disabled', fullPage });
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert(overflow <= 0, `the page is ${overflow} px too wide`);
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => axe.run());
  const grave = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  const told = grave.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`);
  assert.deepEqual(told, [], 'axe finds no serious violation');
}
