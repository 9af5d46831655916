// The contract that every client library must see at Tribune's address.
//
// Each script beside this one wraps one real client and hands it to `run`:
//
//     script.mjs [--mode MODE] VERSION http URL
//     script.mjs [--mode MODE] VERSION sse URL
//     script.mjs [--mode MODE] VERSION stdio COMMAND ARGS...
//
// VERSION is the expected protocol version. The exit code is 0 only if every check passed.
//
// A client has: `protocolVersion`, `tools()`, `call(name, arguments)`, `resources()`, `prompts()`, `close()`,
// and `isUnknownTool(error)`, which says whether an error of `call` means an unknown tool.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

/** The JSON-RPC error of a call to a tool that is not there. */
export const INVALID_PARAMS = -32602;

/** Whether they only read, and whether they destroy. */
const TASK_TOOLS = {
  add_task: [false, false],
  list_tasks: [true, false],
  complete_task: [false, false],
  update_task: [false, false],
  undo_task_update: [false, false],
  delete_task: [false, true],
};

const HINTS = { readOnlyHint: true, destructiveHint: false, openWorldHint: false };

/** What shows who calls over HTTP. */
const authorization = process.env.TRIBUNE_AUTHORIZATION;
export const headers = authorization ? { Authorization: authorization } : {};

/** Where `./test` has installed the packages. */
export const packages = createRequire(new URL('../../.testenv/node/package.json', import.meta.url));

/** Runs the contract with the client that `connect(transport, target, mode)` gives. */
export async function run(connect, modes = ['default']) {
  const args = process.argv.slice(2);
  const mode = args[0] === '--mode' ? args.splice(0, 2)[1] : modes[0];
  const [version, transport, ...target] = args;
  try {
    assert(modes.includes(mode), `--mode is one of ${modes}; given: ${mode}`);
    assert(['http', 'sse', 'stdio'].includes(transport), `the transport is http, sse or stdio; given: ${transport}`);
    const client = await connect(transport, target, mode);
    try {
      await check(client, version);
    } finally {
      await client.close();
    }
    console.log('the contract holds');
    process.exit(0);
  } catch (error) {
    console.error(error);
    process.exit(1);
  }
}

async function check(client, version) {
  assert.equal(client.protocolVersion, version, 'the negotiated version');
  await checkSearchWithoutQuery(client);
  await checkTools(client);
  const found = await checkSearch(client);
  await checkFetch(client, found);
  await checkFetchOfUnknownId(client);
  await checkUnknownTool(client);
  if (process.env.TRIBUNE_HAS_TASKS === '1') await checkTasks(client);
  assert.deepEqual(await client.resources(), [], 'resources/list is empty');
  assert.deepEqual(await client.prompts(), [], 'prompts/list is empty');
}

async function checkTools(client) {
  const tools = new Map((await client.tools()).map((tool) => [tool.name, tool]));
  for (const [name, argument] of [['search', 'query'], ['fetch', 'id']]) {
    const tool = tools.get(name);
    assert(tool, `there is a tool ${name}; seen: ${[...tools.keys()]}`);
    assert(tool.title && tool.description, `${name} has title and description`);
    for (const [hint, value] of Object.entries(HINTS)) {
      assert.equal(tool.annotations?.[hint], value, `${hint} of ${name}`);
    }
    assert.equal(tool.inputSchema.type, 'object', `the input schema of ${name}`);
    assert.deepEqual(tool.inputSchema.required, [argument], `what ${name} wants`);
    assert.equal(tool.inputSchema.properties[argument].type, 'string', `${argument} of ${name}`);
    assert.equal(tool.outputSchema?.type, 'object', `the output schema of ${name}`);
  }
}

async function checkSearch(client) {
  const answer = structured(await client.call('search', { query: 'runner beans' }));
  const first = answer.results[0];
  assert(first, 'search finds runner beans');
  assert.deepEqual(Object.keys(first).sort(), ['id', 'text', 'title', 'url'], 'what a result has');
  assert.equal(first.title, 'Runner beans', 'the best result comes first');
  for (const [key, value] of Object.entries(first)) {
    assert(typeof value === 'string' && value !== '', `${key} of a result is not empty`);
  }
  assert.match(first.url, /^https?:\/\//, 'its url is absolute');
  return first;
}

async function checkFetch(client, found) {
  const document = structured(await client.call('fetch', { id: found.id }));
  assert.deepEqual(Object.keys(document).sort(), ['id', 'metadata', 'text', 'title', 'url'], 'what fetch gives');
  assert.equal(document.id, found.id, 'it is the one found');
  assert.match(document.text, /Sow runner beans in May/, 'it has the whole text');
  assert.equal(typeof document.metadata, 'object', 'metadata is an object');
}

async function checkFetchOfUnknownId(client) {
  const message = failure(await client.call('fetch', { id: 'docs:no-such-document' }));
  assert.match(message, /not found/i, 'an unknown id is not found');
}

async function checkSearchWithoutQuery(client) {
  const message = failure(await client.call('search', {}));
  assert.match(message, /query/, 'the message names `query`');
}

async function checkTasks(client) {
  const tools = new Map((await client.tools()).map((tool) => [tool.name, tool]));
  for (const [name, [readOnlyHint, destructiveHint]] of Object.entries(TASK_TOOLS)) {
    const tool = tools.get(name);
    assert(tool, `there is a tool ${name}; seen: ${[...tools.keys()]}`);
    assert.equal(tool.annotations.readOnlyHint, readOnlyHint, `readOnlyHint of ${name}`);
    assert.equal(tool.annotations.destructiveHint, destructiveHint, `destructiveHint of ${name}`);
    assert(!Object.keys(tool.inputSchema.properties).some((key) => key.includes('user')), `${name} takes no user`);
  }
  const given = { title: 'Order kohlrabi seed', priority: 'high', tags: ['garden'], due_date: '2027-02-01' };
  const added = structured(await client.call('add_task', given));
  for (const [key, value] of Object.entries(given)) assert.deepEqual(added[key], value, `${key} is kept as given`);
  const task = { task_id: added.id };
  const filters = { tag: 'garden', query: 'kohlrabi', status: 'pending' };
  assert.deepEqual(structured(await client.call('list_tasks', filters)).tasks, [added], 'the list has it');
  assert.equal(structured(await client.call('complete_task', task)).status, 'completed', 'it is completed');
  assert.equal(structured(await client.call('complete_task', task)).status, 'pending', 'and taken back');
  const changed = structured(await client.call('update_task', { ...task, title: 'Order kohlrabi', priority: 'low' }));
  assert.deepEqual([changed.title, changed.priority], ['Order kohlrabi', 'low'], 'it is changed');
  assert.equal(structured(await client.call('undo_task_update', task)).title, 'Order kohlrabi seed', 'it is undone');
  assert.equal(structured(await client.call('undo_task_update', task)).title, 'Order kohlrabi', 'and again');
  const found = structured(await client.call('search', { query: 'kohlrabi task' })).results;
  assert.equal(found[0].id, `task:${added.id}`, 'search finds it');
  assert.equal(structured(await client.call('fetch', { id: found[0].id })).title, 'Order kohlrabi', 'fetch has it');
  const wrong = failure(await client.call('update_task', { ...task, due_date: '2027-02-30' }));
  assert.match(wrong, /^VALIDATION_ERROR: /, 'there is no such day');
  assert.equal(structured(await client.call('delete_task', task)).deleted, true, 'it is deleted');
  assert.match(failure(await client.call('complete_task', task)), /^TASK_NOT_FOUND: /, 'it is gone');
}

async function checkUnknownTool(client) {
  let answer;
  try {
    answer = await client.call('no_such_tool', {});
  } catch (error) {
    assert(client.isUnknownTool(error), `an unknown tool is a JSON-RPC error; seen: ${error} ${error.code}`);
    return;
  }
  assert.fail(`an unknown tool is a JSON-RPC error; seen: ${JSON.stringify(answer)}`);
}

/** The structured answer: the same as its one text item. */
function structured(result) {
  assert(!result.isError, `the call succeeds; seen: ${JSON.stringify(result)}`);
  assert.deepEqual(JSON.parse(onlyText(result)), result.structuredContent, 'text and structuredContent are the same');
  return result.structuredContent;
}

function failure(result) {
  assert.equal(result.isError, true, `the call fails with isError; seen: ${JSON.stringify(result)}`);
  return onlyText(result);
}

function onlyText(result) {
  assert.equal(result.content.length, 1, 'there is exactly one content item');
  assert.equal(result.content[0].type, 'text', 'it is a text item');
  return result.content[0].text;
}
