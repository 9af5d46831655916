-- KEYS: the index of symbols, scored by when each was written last (ms)
-- ARGV: how many are given at most, their greatest length, how long they are kept in ms
-- Gives: for each its entry and how long ago it was written, in ms. Nothing is written.
if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then
  return {}
end
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local oldest = string.format('(%.0f', now - tonumber(ARGV[3]))
local newest = string.format('%.0f', now)
local found = redis.call('ZREVRANGEBYSCORE', KEYS[1], newest, oldest, 'WITHSCORES', 'LIMIT', 0, tonumber(ARGV[1]))
local answer = {}
for at = 1, #found, 2 do
  if #found[at] <= tonumber(ARGV[2]) then
    answer[#answer + 1] = found[at]
    answer[#answer + 1] = now - tonumber(found[at + 1])
  end
end
return answer
