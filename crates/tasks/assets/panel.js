// The task list, through the same tools that the model calls.

import { byId, element, safeAddress, shortDate, startOfDay } from './chat-dom.js';

const OPEN = { status: 'pending', sort: 'due', limit: 50 };
const DONE = { status: 'completed', sort: 'newest', limit: 5 };

export class Panel {
  #api;
  #reading = null;
  #again = false;
  #open = byId('open-tasks');
  #done = byId('done-tasks');
  #note = byId('tasks-note');
  #problem = byId('task-problem');
  #form = byId('add-task');

  constructor(api) {
    this.#api = api;
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#add();
    });
    for (const list of [this.#open, this.#done]) {
      list.addEventListener('change', (event) => this.#tick(event.target));
    }
  }

  /** Loads the lists; a call during a load triggers one more. */
  async refresh() {
    if (this.#reading) {
      this.#again = true;
      return this.#reading;
    }
    this.#reading = this.#read();
    await this.#reading;
    this.#reading = null;
    if (this.#again) {
      this.#again = false;
      await this.refresh();
    }
  }

  async #read() {
    try {
      const [open, done] = await Promise.all([this.#call('list_tasks', OPEN), this.#call('list_tasks', DONE)]);
      this.#show(open, done);
    } catch (error) {
      this.#note.textContent = `Could not load tasks. ${error.message}`;
    }
  }

  #show(open, done) {
    const focused = document.activeElement?.dataset?.task;
    this.#open.replaceChildren(...open.tasks.map(taskItem));
    this.#done.replaceChildren(...done.tasks.map(taskItem));
    byId('done-heading').hidden = done.tasks.length === 0;
    const count = open.total ?? open.tasks.length;
    byId('tasks-count').textContent = count > 0 ? String(count) : '';
    this.#note.textContent = noteFor(count, open.tasks.length);
    // Keeps the keyboard focus on the same task.
    if (focused) document.querySelector(`[data-task="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  async #add() {
    const given = Object.fromEntries(new FormData(this.#form));
    const task = Object.fromEntries(Object.entries(given).map(([key, value]) => [key, value.trim()]));
    for (const key of Object.keys(task)) if (task[key] === '') delete task[key];
    if (!task.title) return;
    await this.#change('add_task', task, () => this.#form.reset());
  }

  async #tick(box) {
    const completed = box.checked;
    // Disabling the box would lose the focus.
    const done = await this.#change('complete_task', { task_id: box.dataset.task, completed });
    if (!done) box.checked = !completed;
  }

  /** Runs a tool that changes tasks; shows an error beside the list. */
  async #change(tool, args, then = () => {}) {
    this.#problem.hidden = true;
    try {
      await this.#call(tool, args);
    } catch (error) {
      this.#problem.textContent = error.message;
      this.#problem.hidden = false;
      return false;
    }
    then();
    await this.refresh();
    return true;
  }

  #call(tool, args) {
    return this.#api.tool('tasks', tool, args);
  }
}

function noteFor(count, shown) {
  if (count === 0) return 'Nothing to do.';
  return count > shown ? `${count - shown} more are not shown.` : '';
}

function taskItem(task) {
  const completed = task.status === 'completed';
  const box = element('input', { type: 'checkbox', checked: completed });
  box.dataset.task = task.id;
  const label = element('label', {}, box, element('span', { className: 'task-title' }, task.title));
  const facts = completed ? [] : factsOf(task);
  const line = facts.length > 0 ? element('p', { className: 'task-facts' }, ...facts) : null;
  return element('li', {}, label, line);
}

function factsOf({ due_date: due, priority, category, tags, description, url }) {
  const facts = [];
  if (due) facts.push(dueFact(due));
  if (priority === 'high') facts.push(element('span', { className: 'high' }, 'high priority'));
  if (priority === 'low') facts.push(element('span', {}, 'low priority'));
  for (const word of [category, ...(tags ?? [])]) {
    if (word) facts.push(element('span', {}, word));
  }
  const href = description && url ? safeAddress(url) : null;
  if (href) facts.push(element('a', { href }, 'Details'));
  return facts;
}

/** Due dates are days; a time is ignored. */
function dueFact(due) {
  const [year, month, day] = due.slice(0, 10).split('-').map(Number);
  const date = new Date(year, month - 1, day);
  const days = Math.round((date - startOfDay(new Date())) / 86_400_000);
  const words = { '-1': 'due yesterday', 0: 'due today', 1: 'due tomorrow' }[days] ?? `due ${shortDate(date)}`;
  return element('span', { className: days < 0 ? 'late' : '' }, days < 0 ? `${words}, late` : words);
}
