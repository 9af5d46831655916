-- KEYS: a symbol's report
-- ARGV: its greatest length
-- Gives: what is there, and with a report its remaining life in ms (-1: for ever). One script, so that both belong
-- together. Nothing is written: readers go on when Redis takes no writes.
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' then
  return { kind }
end
local length = redis.call('STRLEN', KEYS[1])
if length > tonumber(ARGV[1]) then
  return { 'long', length }
end
return { 'string', redis.call('PTTL', KEYS[1]), redis.call('GET', KEYS[1]) }
