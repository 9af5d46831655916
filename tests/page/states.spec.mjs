// The chat page for a user who is not signed in, and without a configured model.
//
//     node tests/page/states.spec.mjs OUT_DIR SIGN_IN_URL TOKEN USER NO_MODEL_URL LINK
//
// SIGN_IN_URL is a Tribune that requires API tokens, and TOKEN belongs to USER. NO_MODEL_URL is one
// without a model, and LINK signs its local user in. Output and exit code as in chat.spec.mjs.

import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import { VIEWS, Watch, check, finish, openTab, sound, withBrowser } from './browser.mjs';

const [out, signIn, token, user, noModel, link] = process.argv.slice(2);
assert(link, 'usage: node states.spec.mjs OUT_DIR SIGN_IN_URL TOKEN USER NO_MODEL_URL LINK');
const slashed = (address) => `${address.replace(/\/$/, '')}/`;

async function checkSignIn(browser, view) {
  const page = await openTab(browser, view);
  const watch = new Watch(page, signIn, (message) => /status of 401/.test(message.text()));
  await page.goto(slashed(signIn));

  await check(`${view.name}: a wrong token is told of`, async () => {
    await page.getByLabel('API token').fill('wrong');
    await page.getByLabel('API token').press('Enter');
    await page.locator('#sign-in-problem:not(:empty)').waitFor();
    assert.equal(await page.locator('#message, #tasks').count(), 0, 'nothing of the chat is there');
    await sound(page, join(out, `${view.name}-sign-in.png`));
  });

  await check(`${view.name}: the right token signs in, and one can sign out`, async () => {
    await page.getByLabel('API token').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('#tasks').waitFor({ state: 'attached' });
    assert.equal(await page.locator('.account span').textContent(), user);
    await page.locator('#tasks-note:not(:empty), #open-tasks li').first().waitFor({ state: 'attached' });
    assert.doesNotMatch(await page.locator('#tasks-note').textContent(), /could not/);
    assert(!(await page.evaluate(() => document.cookie)), 'scripts cannot read who it is');
    await sound(page, join(out, `${view.name}-signed-in.png`));
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API token').waitFor();
  });

  await watch.check(view.name);
  await page.context().close();
}

/** Somebody follows a citation, has to sign in, and is led on to it; without scripts as well. */
async function checkCitation(browser, view) {
  const context = await browser.newContext({ viewport: view, colorScheme: view.scheme, javaScriptEnabled: false });
  const page = await context.newPage();
  await check(`${view.name}: who is not signed in is asked and led on`, async () => {
    const path = 'data/docs:beans.md';
    assert.equal((await page.goto(slashed(signIn) + path)).status(), 401);
    await page.getByLabel('API token').fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('Invalid token').waitFor();
    await page.screenshot({ path: join(out, `${view.name}-cited.png`) });
    await page.getByLabel('API token').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Runner beans' }).waitFor();
    assert.equal(page.url(), slashed(signIn) + path);
  });
  await context.close();
}

async function checkNoModel(browser, view) {
  const page = await openTab(browser, view, link);
  const watch = new Watch(page, noModel, () => false);
  await page.goto(slashed(noModel));

  await check(`${view.name}: without a model the page says what is missing, and tasks work`, async () => {
    await page.getByRole('heading', { name: 'Chat needs a model' }).waitFor();
    const missing = await page.locator('.welcome pre').innerText();
    for (const key of ['base_url', 'model', 'api_key']) assert(missing.includes(key), missing);
    assert.equal(await page.locator('#message').count(), 0);
    if (view.width < 600) await page.click('[aria-controls=tasks]');
    const title = `Without a model, ${view.name}`;
    await page.getByLabel('New task').fill(title);
    await page.getByRole('button', { name: 'Add' }).click();
    await page.locator('#open-tasks li', { hasText: title }).waitFor();
    await sound(page, join(out, `${view.name}-no-model.png`));
  });

  await watch.check(view.name);
  await page.context().close();
}

await mkdir(out, { recursive: true });
await withBrowser([], async (browser) => {
  for (const view of VIEWS) {
    await checkSignIn(browser, view);
    await checkCitation(browser, view);
    await checkNoModel(browser, view);
  }
});
finish();
