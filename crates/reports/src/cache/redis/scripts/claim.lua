-- KEYS: the symbol's writer
-- ARGV: node, whether it is fresh, and in ms: lease, keep
-- Gives: Redis's time in us, what became of it, token
local key = KEYS[1]
local node, stale = ARGV[1], ARGV[2] == '1' and '0' or '1'
local lease_ms, keep_ms = tonumber(ARGV[3]), tonumber(ARGV[4])

make_room(key, 'hash')
local lease = lease_of(key, lease_ms)
local outcome, token = 'renewed', lease.token
if lease.node ~= node then
  -- A node without fresh data gives way to one that has some.
  local gives_way = stale == '0' and redis.call('HGET', key, 'stale') == '1'
  if lease.node and not gives_way then
    return { now_us, 'other', digits(lease.token) }
  end
  -- Larger than any before, even if Redis has forgotten them: its time goes on.
  outcome, token = 'taken', math.max(lease.token or 0, now) + 1
  redis.call('HSET', key, 'node', node, 'token', digits(token))
  redis.call('HDEL', key, 'sequence')
end
redis.call('HSET', key, 'until_ms', digits(now + lease_ms), 'stale', stale)
redis.call('PEXPIRE', key, keep_ms)
return { now_us, outcome, digits(token) }
