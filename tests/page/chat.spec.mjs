// The chat page in a real browser, wide and narrow, light and dark.
//
//     node tests/page/chat.spec.mjs BASE_URL OUT_DIR MODEL_URL SIGN_IN
//
// BASE_URL is a running Tribune, and SIGN_IN the link that signs its local user in. It has tasks, a source that has a document about beans, and a
// scripted model. OUT_DIR receives screenshots. CHROMIUM names another browser than /usr/bin/chromium.
// Prints one line per check; the exit code is 0 only if all passed.
//
// The scripted model answers by the user's last message (case-insensitive):
//
// | the user's message contains | the model |
// |---|---|
// | `water the tomatoes` | calls `add_task {"title": "Water the tomatoes"}`, then says: Done: **Water the tomatoes** is on your list. |
// | `delete the tomato` | calls `list_tasks {"status": "all"}`, then `delete_task {"task_id": ID}` with the id of the task of that title from the list |
// | `Yes: …`, or `No: …` | says: It is deleted. Or: It stays. |
// | `find beans` | calls `search {"query": "beans"}`, then says: Beans are sown in *April*. |
// | `break down` | answers 500 to the first 3 requests with that very message (a turn tries 3 times), then says: Here I am again. |
// | `show me html` | says what HOSTILE below holds, exactly |
// | `long story` | says `Paragraph N of a long story.` for N from 1 to 40, as paragraphs, in 40 pieces; from the fourth on once MODEL_URL has got `{"release": true}` |
// | anything else | says: I heard you. |

import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import { VIEWS, Watch, check, finish, openTab, sound, withBrowser } from './browser.mjs';
import { MARKDOWN } from './markdown.mjs';

const HOSTILE = [
  '<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>',
  '[x](javascript:window.pwned=1) and [y](data:text/html,hi) and ![p](https://evil.example/p.png)',
  '**bold [z](JaVaScRiPt:window.pwned=1)** <a href="javascript:window.pwned=1">a</a>',
].join('\n\n');
const HOSTILE_AS_SHOWN = HOSTILE.replace('![p](https://evil.example/p.png)', 'p').replaceAll('**', '').replaceAll('\n\n', ' ');

const [base, out, model, signIn] = process.argv.slice(2);
assert(base && out && model && signIn, 'usage: node chat.spec.mjs BASE_URL OUT_DIR MODEL_URL SIGN_IN');
const home = `${base.replace(/\/$/, '')}/`;

/** What a person does in a tab. */
class Visit {
  constructor(page, view) {
    this.page = page;
    this.view = view;
    this.narrow = view.width < 600;
  }

  async open() {
    await this.page.goto(home);
    const read = this.page.locator('#conversation-list li, #conversations-note:not(:empty)');
    await read.first().waitFor({ state: 'attached' });
  }

  async ask(text) {
    await this.page.fill('#message', text);
    await this.page.press('#message', 'Enter');
  }

  async answered(text) {
    await this.page.locator('.answer:not(.growing)', { hasText: text }).last().waitFor();
    await this.page.locator('#stop').waitFor({ state: 'hidden' });
  }

  /** Does something with the tasks, which are in a drawer on narrow pages. */
  async atTasks(work) {
    if (this.narrow) await this.page.click('[aria-controls=tasks]');
    await work(this.page.locator('#tasks'));
    if (this.narrow) await this.page.click('#tasks .close');
  }

  async atConversations(work) {
    if (this.narrow) await this.page.click('[aria-controls=conversations]');
    await work(this.page.locator('#conversations'));
  }

  task(title) {
    return this.page.locator('#open-tasks li', { hasText: title });
  }

  sound(state) {
    return sound(this.page, join(out, `${this.view.name}-${state}.png`));
  }
}

/** The browser writes down every refused request, also those that the checks are about. */
function isRefusal(message) {
  const { pathname } = new URL(message.location().url || home);
  return /status of (404|503)/.test(message.text()) && /\/(chat|conversations\/0{8}[-0-9]*\/messages)$/.test(pathname);
}

async function checkView(browser, view) {
  const page = await openTab(browser, view, signIn);
  const watch = new Watch(page, home, isRefusal);
  const visit = new Visit(page, view);
  for (const [name, work, colour] of CHECKS) {
    if (colour === IN_ANY_COLOUR && view.scheme === 'dark') continue;
    await check(`${view.name}: ${name}`, () => work(visit));
  }
  await watch.check(view.name);
  await page.context().close();
}

/** Of checks that look at nothing: once for each width is enough. */
const IN_ANY_COLOUR = 'in any colour';

const CHECKS = [
  ['an empty page offers something to begin with', async (visit) => {
    await visit.open();
    const { page } = visit;
    await page.getByRole('heading', { name: 'What can I do for you?' }).waitFor();
    assert((await page.locator('.suggestions button').count()) >= 2);
    assert.equal(await page.locator('h1').count(), 1);
    assert(await page.locator('#send').isDisabled(), 'nothing to send yet');
    await page.getByRole('heading', { name: 'Ask your data anything' }).waitFor();
    await visit.sound('1-empty');
  }],

  ['a task is added by talking, and stands beside', async (visit) => {
    const { page } = visit;
    await visit.ask('Add a task to water the tomatoes');
    await visit.answered('is on your list');
    const answer = page.locator('.answer').last();
    assert.match(await answer.locator('.tools .done').innerText(), /Added a task/);
    assert.equal(await answer.locator('strong').innerText(), 'Water the tomatoes');
    assert.equal(await page.locator('.question', { hasText: 'water the tomatoes' }).count(), 1);
    assert.match(page.url(), /[?&]conversation=[0-9a-f-]{36}/);
    assert.equal(await page.locator('#log[role=log][aria-live=polite]').count(), 1);
    assert.equal(await page.locator('#log [aria-live=off], #log [aria-busy]').count(), 0, 'nothing half done is left');
    await visit.atTasks(() => visit.task('Water the tomatoes').waitFor());
    await visit.sound('2-added');
  }],

  ['deleting asks first, and a button confirms', async (visit) => {
    const { page } = visit;
    await visit.ask('Delete the tomato task');
    await visit.answered('Delete the task "Water the tomatoes"?');
    assert.match(await page.locator('.answer').last().locator('.tools .waiting').innerText(), /needs your confirmation/);
    await visit.sound('3-confirm');
    await visit.atTasks(() => visit.task('Water the tomatoes').waitFor());
    const buttons = page.getByRole('group', { name: 'Delete the task "Water the tomatoes"?' });
    await buttons.getByRole('button', { name: 'No', exact: true }).click();
    await visit.answered('It stays');
    assert.equal(await page.locator('.confirm').count(), 0, 'what was answered cannot be answered again');
    await visit.ask('Delete the tomato task');
    await visit.answered('Delete the task "Water the tomatoes"?');
    await visit.atTasks(() => visit.task('Water the tomatoes').waitFor());
    await buttons.getByRole('button', { name: 'Yes', exact: true }).click();
    await visit.answered('It is deleted');
    assert.equal(await page.locator('.confirm').count(), 0);
    assert.equal(await page.locator('.question p', { hasText: /^Yes: Delete the task/ }).count(), 1);
    assert.equal(await page.locator('.answer').last().locator('.unchecked').count(), 0, 'a tool ran');
    await visit.task('Water the tomatoes').waitFor({ state: 'detached' });
  }],

  ['a task is added by the form and completed by its box', async (visit) => {
    const { page } = visit;
    const title = `Buy string, ${visit.view.name}`;
    await visit.atTasks(async (tasks) => {
      await tasks.getByLabel('New task').fill(title);
      await tasks.getByRole('button', { name: 'Add' }).click();
      await visit.task(title).waitFor();
      assert.equal(await tasks.getByLabel('New task').inputValue(), '');
      await visit.sound('4-tasks');
      await tasks.getByLabel(title).click();
      await page.locator('#done-tasks li', { hasText: title }).waitFor();
      await visit.task(title).waitFor({ state: 'detached' });
    });
  }],

  ['what an answer is based on is linked', async (visit) => {
    await visit.ask('Please find beans');
    await visit.answered('Beans are sown');
    const source = visit.page.locator('.answer').last().locator('.citations a').first();
    const href = await source.getAttribute('href');
    assert(href.startsWith(`${home}data/`), href);
    assert.equal((await visit.page.request.get(href)).status(), 200);
  }],

  ['a model that fails is told of, and can be tried again', async (visit) => {
    const { page } = visit;
    const text = `Now break down, ${visit.view.name} ${Date.now()}`;
    await visit.ask(text);
    await page.locator('.notice.failed').waitFor();
    await visit.sound('5-failed');
    for (let tries = 0; tries < 5 && (await page.locator('.notice.failed').count()) > 0; tries += 1) {
      await page.getByRole('button', { name: 'Try again' }).click();
      await page.locator('#stop').waitFor({ state: 'hidden' });
    }
    await visit.answered('Here I am again');
    assert.equal(await page.locator('.question', { hasText: text }).count(), 1);
    await page.reload();
    await visit.answered('Here I am again');
    assert.equal(await page.locator('.question', { hasText: text }).count(), 1, 'nothing was kept twice');
  }],

  ['HTML and scripts in an answer stay text', async (visit) => {
    const { page } = visit;
    await visit.ask('Show me html');
    await visit.answered('onerror');
    const body = page.locator('.answer').last().locator('.body');
    const shown = (await body.innerText()).replace(/\s+/g, ' ');
    assert.equal(shown, HOSTILE_AS_SHOWN);
    assert.equal(await body.locator('img, script, iframe, [onerror]').count(), 0);
    const addresses = await body.locator('a').evaluateAll((links) => links.map((link) => link.href));
    assert.deepEqual(addresses, ['https://evil.example/p.png'], 'a picture is only a link, and nothing else is one');
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    await visit.sound('6-html');
  }],

  ['an answer need not be watched', async (visit) => {
    const { page } = visit;
    await visit.ask('Tell me a long story');
    await page.locator('.answer.growing', { hasText: 'Paragraph 2' }).waitFor();
    await visit.sound('7-growing');
    await page.keyboard.press('Escape');
    const again = page.getByRole('button', { name: 'Show the answer' });
    await again.waitFor();
    assert(await page.locator('#send').isVisible());
    await fetch(model, { method: 'POST', body: JSON.stringify({ release: true }) });
    await again.click();
    await visit.answered('Paragraph 40');
    assert.equal(await page.locator('.question', { hasText: 'long story' }).count(), 1);
    assert.equal(await page.locator('.answer', { hasText: 'Paragraph 40' }).count(), 1);
  }],

  ['the address of a conversation shows it again', async (visit) => {
    const { page } = visit;
    const before = await page.locator('.question').allInnerTexts();
    await page.reload();
    await visit.answered('Paragraph 40');
    assert.deepEqual(await page.locator('.question').allInnerTexts(), before);
    const atEnd = await page.locator('#log').evaluate((log) => log.scrollHeight - log.scrollTop - log.clientHeight);
    assert(atEnd < 2, `the newest message is in view, ${atEnd} px off`);
  }, IN_ANY_COLOUR],

  ['conversations are begun, left and found again', async (visit) => {
    const { page } = visit;
    await visit.atConversations((side) => side.getByRole('button', { name: 'New conversation' }).click());
    await page.getByRole('heading', { name: 'What can I do for you?' }).waitFor();
    assert(!page.url().includes('conversation='));
    await page.locator('.suggestions button').first().click();
    await visit.answered('I heard you');
    const first = page.locator('#conversation-list a', { hasText: 'Add a task to water the tomatoes' }).first();
    await visit.atConversations(() => first.click());
    await visit.answered('Paragraph 40');
    await page.goBack();
    await visit.answered('I heard you');
    assert.equal(await page.locator('.unchecked').innerText(), 'Nothing was looked up for this answer.');
    assert.equal(await page.locator('.question').count(), 1);
    await page.goto(`${home}?conversation=00000000-0000-4000-8000-000000000000`);
    await page.getByText('This conversation does not exist.').waitFor();
  }, IN_ANY_COLOUR],

  ['a message that is too long cannot be sent', async (visit) => {
    const { page } = visit;
    await visit.open();
    await page.fill('#message', '🍅'.repeat(4000));
    assert.equal(await page.locator('#count').innerText(), '0 characters left');
    assert(await page.locator('#send').isEnabled());
    await page.fill('#message', '🍅'.repeat(4001));
    assert.equal(await page.locator('#count').innerText(), '1 character too many');
    assert(await page.locator('#send').isDisabled());
    await page.press('#message', 'Enter');
    assert.equal(await page.locator('.question').count(), 0);
  }, IN_ANY_COLOUR],

  ['everything is reached with the keyboard', async (visit) => {
    const { page, narrow } = visit;
    await visit.open();
    await page.keyboard.press('Tab');
    assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the chat');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement.id === 'message');
    await page.keyboard.type('First line');
    await page.keyboard.press('Shift+Enter');
    await page.keyboard.type('and the second');
    await page.keyboard.press('Enter');
    await visit.answered('I heard you');
    assert.equal(await page.locator('.question p').innerText(), 'First line\nand the second');
    assert.equal(await page.evaluate(() => document.activeElement.id), 'message', 'one goes on writing');
    if (narrow) {
      await tabTo(page, '[aria-controls=tasks]', 'Shift+Tab');
      await page.keyboard.press('Enter');
      assert.equal(await page.locator('[aria-controls=tasks]').getAttribute('aria-expanded'), 'true');
      assert(await page.evaluate(() => document.querySelector('#tasks').contains(document.activeElement)));
    }
    const title = `Typed, ${visit.view.name}`;
    await tabTo(page, '#task-title', 'Tab');
    await page.keyboard.type(title);
    await page.keyboard.press('Enter');
    await visit.task(title).waitFor();
    await tabTo(page, `#open-tasks li:has-text("${title}") input`, 'Tab');
    await page.keyboard.press('Space');
    await page.locator('#done-tasks li', { hasText: title }).waitFor();
    await page.waitForFunction((wanted) => document.activeElement.closest('li')?.textContent.includes(wanted), title);
    if (narrow) {
      await page.keyboard.press('Escape');
      assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-controls')), 'tasks');
      assert.equal(await page.locator('[aria-controls=tasks]').getAttribute('aria-expanded'), 'false');
    }
  }, IN_ANY_COLOUR],

  ['Markdown becomes the nodes that it means', async (visit) => {
    await visit.open();
    const module = new URL('assets/chat-markdown.js', home).pathname;
    for (const [source, wanted] of MARKDOWN) {
      const given = await visit.page.evaluate(async ([path, text]) => {
        const { markdown } = await import(path);
        const box = document.createElement('div');
        box.append(markdown(text));
        return box.innerHTML;
      }, [module, source]);
      assert.equal(given, wanted, source);
    }
    const worst = ['['.repeat(20_000), '**a '.repeat(5_000), '> '.repeat(5_000), '`a'.repeat(10_000), '[a]('.repeat(5_000)];
    // Anything worse than linear would not end before the browser is given up.
    await visit.page.evaluate(async ([path, texts]) => {
      const { markdown } = await import(path);
      for (const text of texts) markdown(text);
    }, [module, worst]);
  }, IN_ANY_COLOUR],
];

/** Presses `key` until what `selector` finds has the focus, and sees that the focus shows. */
async function tabTo(page, selector, key) {
  for (let presses = 0; presses < 120; presses += 1) {
    await page.keyboard.press(key);
    const reached = await page.locator(selector).evaluate((node) => node === document.activeElement).catch(() => false);
    if (!reached) continue;
    const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
    assert.notEqual(outline, 'none', `${selector} shows that it has the focus`);
    return;
  }
  assert.fail(`${selector} is not reached with ${key}`);
}

async function withoutScript(browser) {
  const page = await browser.newPage({ javaScriptEnabled: false });
  await page.goto(home);
  // No waiting here, because waiting needs scripts.
  assert.match(await page.locator('.no-script').innerText(), /needs JavaScript/);
  assert(await page.locator('.no-script').isVisible());
  assert(await page.getByRole('heading', { name: 'Connect' }).isVisible());
  assert(await page.locator('#chat').isHidden(), 'what would not work is not shown');
  await page.screenshot({ path: join(out, 'without-script.png') });
}

await mkdir(out, { recursive: true });
await withBrowser([], async (browser) => {
  for (const view of VIEWS) await checkView(browser, view);
});
await withBrowser(['--blink-settings=scriptEnabled=false'], (browser) =>
  check('without JavaScript the rest of the page stands', () => withoutScript(browser)));
finish();
