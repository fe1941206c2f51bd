-- Take what is due and hide it from others: each member's score moves to the end of the hold.
--
-- KEYS[1]  the queue, a sorted set from member to due time in ms
-- ARGV[1]  now in ms, or '' for the server's own time
-- ARGV[2]  how long the members are held, in ms
-- ARGV[3]  the most members to take
-- Output   {end of the hold in ms, member, …}, longest due first

local function server_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local now = tonumber(ARGV[1]) or server_ms()
local held_until = string.format('%.0f', now + tonumber(ARGV[2]))
local due = redis.call(
  'ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now), 'LIMIT', 0, ARGV[3]
)

-- unpack takes at most about 8,000 values.
for first = 1, #due, 1000 do
  local moves = {}
  for i = first, math.min(first + 999, #due) do
    moves[#moves + 1] = held_until
    moves[#moves + 1] = due[i]
  end
  redis.call('ZADD', KEYS[1], unpack(moves))
end

table.insert(due, 1, held_until)
return due
