-- KEYS: the symbol's writer
-- ARGV: node, token, and in ms: lease
-- Gives: Redis's time in us. The token stays, so that the next one is larger.
make_room(KEYS[1], 'hash')
local lease = lease_of(KEYS[1], tonumber(ARGV[3]))
if lease.node == ARGV[1] and digits(lease.token) == ARGV[2] then
  redis.call('HSET', KEYS[1], 'until_ms', digits(now))
  redis.call('HDEL', KEYS[1], 'node')
end
return { now_us }
