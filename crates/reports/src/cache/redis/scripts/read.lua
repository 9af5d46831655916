-- KEYS: a symbol's report
-- ARGV: its greatest length
-- Gives: the type of what is there (`long` for a string that is too long), its remaining life in ms (-1: for ever; for
-- `long` its length), and the report. One script, so that life and report belong together. Nothing is written: readers
-- go on when Redis takes no writes.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' then
  return { kind, 0, '' }
end
local length = redis.call('STRLEN', KEYS[1])
if length > tonumber(ARGV[1]) then
  return { 'long', length, '' }
end
return { 'string', redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[1]) }
