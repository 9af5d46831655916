-- KEYS: a symbol's report
-- ARGV: its greatest length
-- Gives: its remaining life in ms (-2: nothing is there; -1: something that is no report), and the report. One script, so
-- that life and report belong together. Nothing is written: readers go on when Redis takes no writes.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind == 'none' then
  return { -2, '' }
end
if kind ~= 'string' or redis.call('STRLEN', KEYS[1]) > tonumber(ARGV[1]) then
  return { -1, '' }
end
return { redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[1]) }
