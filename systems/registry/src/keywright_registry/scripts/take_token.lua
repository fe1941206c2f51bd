-- Take one token out of a token bucket. A refused request takes none.
--
-- KEYS[1]  the bucket, a hash of tokens and last_refill (seconds since 1970)
-- ARGV[1]  its capacity in tokens
-- ARGV[2]  tokens added in a period
-- ARGV[3]  the period in seconds
-- ARGV[4]  now in seconds since 1970, or '' for the clock of the server
-- Output   {1 if taken else 0, whole tokens left, ms until a token is there, ms until it is full}

local function server_seconds()
  local time = redis.call('TIME')
  return tonumber(time[1]) + tonumber(time[2]) / 1000000
end

local capacity, rate, period = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = tonumber(ARGV[4]) or server_seconds()
local stored = redis.call('HMGET', KEYS[1], 'tokens', 'last_refill')
local last = tonumber(stored[2]) or now

-- A clock that goes back adds and removes nothing.
local flowed = math.max(0, now - last) * rate / period
local tokens = math.min(capacity, (tonumber(stored[1]) or capacity) + flowed)

-- Seconds since 1970 are exact to a microsecond or so, so a smaller deficit counts as a whole token.
local taken = tokens > 1 - 0.000001
if taken then
  tokens = math.max(0, tokens - 1)
  last = math.max(last, now)
  redis.call(
    'HSET', KEYS[1], 'tokens', string.format('%.17g', tokens), 'last_refill', string.format('%.17g', last)
  )
end
local full_ms = math.ceil((capacity - tokens) * period / rate * 1000)
redis.call('PEXPIRE', KEYS[1], math.max(1, full_ms))
local wait_ms = math.ceil(math.max(0, 1 - tokens) * period / rate * 1000)
return {taken and 1 or 0, math.floor(tokens), wait_ms, full_ms}
