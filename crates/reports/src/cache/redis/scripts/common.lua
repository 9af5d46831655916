-- Stands before every script of the writer's side. Redis 6.2 or later (SET with PXAT), not in cluster mode.
-- The only clock is Redis's own. Numbers are doubles here: microseconds are exact until the year 2255.
local time = redis.call('TIME')
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])
local now = math.floor(now_us / 1000)

-- Names of nodes and assets are shorter; what is longer is not ours.
local LONGEST_NAME = 200
local LARGEST_WHOLE = 4503599627370496

-- A whole number that is exact, or nil.
local function whole(text)
  if not text or #text > 16 or not string.find(text, '^%d+$') then
    return nil
  end
  local number = tonumber(text)
  if number > LARGEST_WHOLE then
    return nil
  end
  return number
end

-- What somebody else put under a key of ours goes.
local function make_room(key, kind)
  local found = redis.call('TYPE', key).ok
  if found ~= kind and found ~= 'none' then
    redis.call('UNLINK', key)
  end
end

-- Who has a symbol. `node` is nil if nobody has it now. A lease that ends later than any can is not in force: Redis's
-- clock was set back, or it is not ours.
local function lease_of(key, longest)
  local fields = redis.call('HMGET', key, 'node', 'token', 'sequence', 'until_ms')
  local lease = { token = whole(fields[2]), sequence = whole(fields[3]), until_ms = whole(fields[4]) }
  if lease.until_ms and lease.until_ms > now + 2 * longest then
    lease.until_ms = nil
  end
  local node = fields[1]
  if node and #node <= LONGEST_NAME and lease.token and lease.until_ms and lease.until_ms > now then
    lease.node = node
  end
  return lease
end

-- All digits: Lua would write large numbers with an exponent.
local function digits(number)
  return string.format('%.0f', number)
end
