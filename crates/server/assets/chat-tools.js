// What tools are called in front of people.

const NAMES = {
  add_task: ['Adding a task', 'Added a task', 'Add a task'],
  list_tasks: ['Looking at your tasks', 'Looked at your tasks', 'Look at your tasks'],
  complete_task: ['Ticking a task', 'Ticked a task', 'Tick a task'],
  update_task: ['Changing a task', 'Changed a task', 'Change a task'],
  delete_task: ['Deleting a task', 'Deleted a task', 'Delete a task'],
  search: ['Searching', 'Searched', 'Search'],
  fetch: ['Reading a document', 'Read a document', 'Read a document'],
  search_hansard_speeches: ['Searching speeches', 'Searched speeches', 'Search speeches'],
  fetch_hansard_speech: ['Reading a speech', 'Read a speech', 'Read a speech'],
  get_report: ['Reading a market report', 'Read a market report', 'Read a market report'],
};

/** What a call is called while it is `running`, and once it is `done`, `failed` or `waiting`. */
export function described(tool, state) {
  const plain = tool.replace(/^binance_/, '').replace(/[_.-]+/g, ' ').trim();
  const [running, done, todo] = NAMES[tool] ?? [`Using “${plain}”`, `Used “${plain}”`, `Use “${plain}”`];
  switch (state) {
    case 'running':
      return `${running}…`;
    case 'done':
      return done;
    default:
      return todo;
  }
}

/** What came of a call, in a few words; empty if there is nothing to say beyond that it is done. */
export function outcomeOf({ success, needs_confirmation: waits, result_preview: preview }) {
  if (waits) return 'waits for your yes';
  if (success) return preview === 'done' ? '' : preview ?? '';
  return preview ?? 'did not work';
}

export function stateOf({ success, needs_confirmation: waits }) {
  if (waits) return 'waiting';
  return success ? 'done' : 'failed';
}
