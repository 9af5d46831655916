-- KEYS: the nodes, scored by when their heartbeat expires
-- ARGV: the node that calls (empty for none), whether it is `alive` or `leaving`, how many nodes to give at most, alive in ms
-- Gives: Redis's time in us, then the nodes
local key, node, alive_ms = KEYS[1], ARGV[1], tonumber(ARGV[4])
make_room(key, 'zset')
if node ~= '' and ARGV[2] == 'leaving' then
  redis.call('ZREM', key, node)
elseif node ~= '' then
  redis.call('ZADD', key, digits(now + alive_ms), node)
  redis.call('PEXPIRE', key, 2 * alive_ms)
end
-- Expired nodes, and those that would live longer than any heartbeat lasts.
redis.call('ZREMRANGEBYSCORE', key, '-inf', digits(now))
redis.call('ZREMRANGEBYSCORE', key, '(' .. digits(now + 2 * alive_ms), '+inf')
local names = {}
for _, name in ipairs(redis.call('ZRANGE', key, 0, tonumber(ARGV[3]) - 1)) do
  if #name <= LONGEST_NAME then
    names[#names + 1] = name
  end
end
return { now_us, names }
