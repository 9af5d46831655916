// How tool calls are shown. The server sends a label with each call.

export function stateOf({ success, needs_confirmation: waits }) {
  if (waits) return 'waiting';
  return success ? 'done' : 'failed';
}

/** The result in a few words; empty if there is nothing to say beyond that the call succeeded. */
export function outcomeOf({ success, needs_confirmation: waits, result_preview: preview }) {
  if (waits) return 'needs your confirmation';
  if (success) return preview === 'done' ? '' : preview ?? '';
  return preview ?? 'failed';
}
