-- Move an intent of the journal from one state to the next, if it is still in the first.
--
-- KEYS[1]  the intents, a hash from intent id to its state letter followed by its plan
-- ARGV[1]  intent id
-- ARGV[2]  the state letter it must have
-- ARGV[3]  the state letter it gets, or '' to drop it
-- Output   the state letter it has now, or '' when it is gone

local found = redis.call('HGET', KEYS[1], ARGV[1])
if not found then
  return ''
end
local state = string.sub(found, 1, 1)
if state ~= ARGV[2] then
  return state
end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[3] .. string.sub(found, 2))
end
return ARGV[3]
