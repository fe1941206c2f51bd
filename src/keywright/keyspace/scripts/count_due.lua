-- Count what is due.
--
-- KEYS[1]  the queue, a sorted set from member to due time in ms
-- ARGV[1]  now in ms, or '' for the server's own time
-- Output   how many members are due

local function server_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local now = tonumber(ARGV[1]) or server_ms()
return redis.call('ZCOUNT', KEYS[1], '-inf', string.format('%.0f', now))
