-- KEYS: the symbol's writer
-- ARGV: node, whether it is the first choice, whether it is fresh, floor of the token, and in ms: lease, left free,
--   alive, keep
-- Gives: Redis's time in us, what became of it, token, node
local key = KEYS[1]
local node, is_first, is_fresh, floor = ARGV[1], ARGV[2] == '1', ARGV[3] == '1', whole(ARGV[4]) or 0
local stale = is_fresh and '0' or '1'
local lease_ms, left_free_ms, alive_ms, keep_ms =
  tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])

make_room(key, 'hash')
local lease = lease_of(key, lease_ms)

if lease.node == node then
  redis.call('HSET', key, 'until_ms', digits(now + lease_ms), 'stale', stale)
  redis.call('PEXPIRE', key, keep_ms)
  local wanted = redis.call('HMGET', key, 'wanted_by', 'wanted_until_ms')
  local wanted_by, wanted_until = wanted[1], whole(wanted[2])
  if not wanted_by or wanted_by == node or #wanted_by > LONGEST_NAME
    or not wanted_until or wanted_until <= now or wanted_until > now + 2 * alive_ms then
    wanted_by = ''
  end
  return { now_us, 'renewed', digits(lease.token), wanted_by }
end

local is_left = is_fresh and redis.call('HGET', key, 'stale') == '1'
if lease.node and not is_left then
  if is_first then
    redis.call('HSET', key, 'wanted_by', node, 'wanted_until_ms', digits(now + alive_ms))
  end
  return { now_us, 'other', digits(lease.token), lease.node }
end

if is_first or is_left or (lease.until_ms and now - lease.until_ms >= left_free_ms) then
  -- Larger than any before, even if Redis has forgotten them: its time goes on.
  local token = digits(math.max(lease.token or 0, floor, now) + 1)
  redis.call('HSET', key, 'node', node, 'token', token, 'until_ms', digits(now + lease_ms),
    'stale', stale)
  redis.call('HDEL', key, 'sequence')
  redis.call('PEXPIRE', key, keep_ms)
  return { now_us, 'taken', token, node }
end

if not lease.until_ms then
  -- Nobody ever had it: free from now on.
  redis.call('HSET', key, 'until_ms', digits(now))
  redis.call('PEXPIRE', key, keep_ms)
end
return { now_us, 'free', '0', '' }
