// A person signs in with a password and decides what a program may do; with a keyboard alone, and without scripts.
//
//     node tests/page/sign-in.spec.mjs OUT_DIR URL USER PASSWORD [NAME]
//
// URL is a Tribune with the built-in issuer that requires a sign-in. With NAME, its users also sign in at an
// `oidc-provider`, where everybody is who they say. Output and exit code as in chat.spec.mjs.

import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';

import { PATIENCE, VIEWS, check, finish, sound, withBrowser } from './browser.mjs';

const [out, url, user, password, guest] = process.argv.slice(2);
assert(password, 'usage: node sign-in.spec.mjs OUT_DIR URL USER PASSWORD [NAME]');
const base = url.replace(/\/$/, '');

/** The program that wants access. */
const program = createServer((request, response) => response.end('You can close this window.'));
program.listen(0, '127.0.0.1');
await once(program, 'listening');
const callback = `http://127.0.0.1:${program.address().port}/callback`;

async function register() {
  const body = JSON.stringify({ client_name: 'Notebook <b>bold</b>', redirect_uris: [callback] });
  const answer = await fetch(`${base}/oauth/register`, { method: 'POST', body });
  assert.equal(answer.status, 201);
  return (await answer.json()).client_id;
}

function authorize(client, state) {
  const challenge = createHash('sha256').update(randomBytes(32).toString('hex')).digest('base64url');
  const fields = new URLSearchParams({
    response_type: 'code',
    client_id: client,
    redirect_uri: callback,
    scope: 'read tasks',
    state,
    code_challenge: challenge,
    code_challenge_method: 'S256',
  });
  return `${base}/oauth/authorize?${fields}`;
}

/** Presses Tab until what matches `selector` has the focus: a keyboard reaches it. */
async function tabTo(page, selector) {
  for (let presses = 0; presses < 30; presses += 1) {
    await page.keyboard.press('Tab');
    if (await page.locator(`${selector}:focus`).count()) return;
  }
  assert.fail(`the Tab key does not reach ${selector}`);
}

async function signIn(page, secret) {
  await page.locator('#username').focus();
  await page.keyboard.type(user);
  await tabTo(page, '#password');
  await page.keyboard.type(secret);
  await page.keyboard.press('Enter');
}

async function decide(page, decision) {
  await tabTo(page, `button[name=decision][value=${decision}]`);
  await page.keyboard.press('Enter');
  await page.waitForURL((address) => address.pathname === '/callback');
  return new URL(page.url()).searchParams;
}

/** A browser of its own at one size and in one colour: its name, its page, and a way to look at it. */
async function open(browser, view, scripts) {
  const name = `${view.name}${scripts ? '' : '-without-scripts'}`;
  const context = await browser.newContext({
    viewport: { width: view.width, height: view.height },
    colorScheme: view.scheme,
    javaScriptEnabled: scripts,
    // The test's own certificate; Node checks it.
    ignoreHTTPSErrors: true,
  });
  // The provider's pages ask for a font of the internet.
  await context.route(({ hostname }) => hostname.endsWith('.com'), (route) => route.abort());
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  // axe is a script of the page.
  const look = (part) => {
    const picture = join(out, `${name}-${part}.png`);
    return scripts ? sound(page, picture) : page.screenshot({ path: picture });
  };
  return { name, context, page, look };
}

async function checkView(browser, view, client, scripts) {
  const { name, context, page, look } = await open(browser, view, scripts);

  await check(`${name}: a wrong password is refused and the right one leads on`, async () => {
    await page.goto(authorize(client, name));
    // More than five wrong passwords a minute lock the name.
    if (view.scheme === 'light') {
      await signIn(page, 'not the password');
      await page.getByRole('alert').waitFor();
    }
    await look('sign-in');
    await signIn(page, password);
    await page.getByRole('button', { name: 'Allow' }).waitFor();
  });

  await check(`${name}: the consent page names program, host, user and scopes`, async () => {
    const text = await page.locator('main').innerText();
    for (const part of ['Notebook <b>bold</b>', new URL(callback).hostname, user, 'Search and read', 'your tasks']) {
      assert(text.includes(part), `${part} is missing: ${text}`);
    }
    assert(!text.includes('chat'), 'only what the program asked for');
    await look('consent');
  });

  await check(`${name}: Allow gives a code, Deny gives none`, async () => {
    const allowed = await decide(page, 'allow');
    assert(allowed.get('code'));
    assert.equal(allowed.get('state'), name);
    assert.equal(allowed.get('iss'), base);
    await page.goto(authorize(client, 'again'));
    const denied = await decide(page, 'deny');
    assert.equal(denied.get('error'), 'access_denied');
    assert.equal(denied.get('code'), null);
  });

  await check(`${name}: scripts cannot read the session`, async () => {
    const cookies = await context.cookies(`${base}/`);
    assert(cookies.length > 0 && cookies.every((cookie) => cookie.httpOnly), JSON.stringify(cookies));
    // Bound to the host, or to the path that the server has there.
    const { protocol, pathname } = new URL(`${base}/`);
    const prefix = pathname === '/' ? '__Host-' : '__Secure-';
    const isBound = (cookie) => cookie.name.startsWith(prefix) && cookie.secure && cookie.path === pathname;
    if (protocol === 'https:') assert(cookies.every(isBound), JSON.stringify(cookies));
  });
  await context.close();
}

async function checkProvider(browser, view, client, scripts) {
  const { name, context, page, look } = await open(browser, view, scripts);

  await check(`${name}: a person signs in at the provider and decides here`, async () => {
    await page.goto(authorize(client, name));
    await look('with-provider');
    await tabTo(page, 'a[href*="/login/provider"]');
    await page.keyboard.press('Enter');
    await page.locator('input[name=login]').focus();
    await page.keyboard.type(guest);
    await page.locator('input[name=password]').focus();
    await page.keyboard.type('any');
    await page.keyboard.press('Enter');
    // The provider's own consent, the first time.
    const agree = page.getByRole('button', { name: 'Continue' });
    const allow = page.getByRole('button', { name: 'Allow' });
    await agree.or(allow).waitFor();
    if (await agree.count()) await agree.press('Enter');
    await allow.waitFor();
    const text = await page.locator('main').innerText();
    assert(text.includes(`${guest}@example.org`), text);
    await look('consent-of-provider');
    const allowed = await decide(page, 'allow');
    assert(allowed.get('code'));
    assert.equal(allowed.get('iss'), base);
  });

  await context.close();
}

await mkdir(out, { recursive: true });
await withBrowser([], async (browser) => {
  const client = await register();
  for (const view of VIEWS) await checkView(browser, view, client, true);
  await checkView(browser, VIEWS[0], client, false);
  await checkView(browser, VIEWS[2], client, false);
  if (!guest) return;
  for (const view of VIEWS) await checkProvider(browser, view, client, true);
  await checkProvider(browser, VIEWS[0], client, false);
  await checkProvider(browser, VIEWS[2], client, false);
});
program.close();
finish();
