-- KEYS: the nodes, scored by when their word runs out
-- ARGV: who speaks (nobody if empty), whether it is `alive` or `leaving`, how many are given at most, alive in ms
-- Gives: Redis's time in us, then the nodes
local key, node, alive_ms = KEYS[1], ARGV[1], tonumber(ARGV[4])
make_room(key, 'zset')
if node ~= '' and ARGV[2] == 'leaving' then
  redis.call('ZREM', key, node)
elseif node ~= '' then
  redis.call('ZADD', key, digits(now + alive_ms), node)
  redis.call('PEXPIRE', key, 2 * alive_ms)
end
-- Those whose word has run out, and those that would live longer than any word holds.
redis.call('ZREMRANGEBYSCORE', key, '-inf', digits(now))
redis.call('ZREMRANGEBYSCORE', key, '(' .. digits(now + 2 * alive_ms), '+inf')
local answer = { now_us }
for _, name in ipairs(redis.call('ZRANGE', key, 0, tonumber(ARGV[3]) - 1)) do
  if #name <= LONGEST_NAME then
    answer[#answer + 1] = name
  end
end
return answer
