-- KEYS: the symbol's writer, its report, the index of symbols
-- ARGV: node, token, sequence, when it was generated (us, Redis's clock), how long before sending that was (us), the
--   report, its entry in the index, how many entries there are at most, and in ms: lease, keep report, keep symbol
-- Gives: Redis's time in us, and 1 if it was stored. A report that is sent twice is stored twice.
local node, token, sequence = ARGV[1], ARGV[2], whole(ARGV[3])
local generated_us, elapsed_us, report, entry = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7]
local most_entries, lease_ms, keep_report_ms, keep_symbol_ms =
  tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])

make_room(KEYS[1], 'hash')
local lease = lease_of(KEYS[1], lease_ms)
if lease.node ~= node or digits(lease.token) ~= token or not sequence
  or (lease.sequence and sequence < lease.sequence) then
  return { now_us, 0 }
end
redis.call('HSET', KEYS[1], 'sequence', ARGV[3])

-- Never later than it can have been: the estimate is ahead if Redis's clock was set back meanwhile.
generated_us = math.min(generated_us, now_us - elapsed_us)
local expires = math.floor(generated_us / 1000) + keep_report_ms
if expires > now then
  redis.call('SET', KEYS[2], report, 'PXAT', digits(expires))
else
  redis.call('UNLINK', KEYS[2])
end

make_room(KEYS[3], 'zset')
redis.call('ZREMRANGEBYSCORE', KEYS[3], '(' .. digits(now), '+inf')
redis.call('ZADD', KEYS[3], digits(now), entry)
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', digits(now - keep_symbol_ms))
if redis.call('ZCARD', KEYS[3]) > most_entries then
  redis.call('ZREMRANGEBYRANK', KEYS[3], 0, -most_entries - 1)
end
redis.call('PEXPIRE', KEYS[3], keep_symbol_ms)
return { now_us, 1 }
