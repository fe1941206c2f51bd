-- Take back what a repair wrote to a string, a field of a hash, a score or a list, if it is still that.
--
-- KEYS[1]  the key
-- ARGV[1]  what the repair wrote
-- ARGV[2]  the command that takes it back, its other words behind it
-- Output   1 when it was sent, 0 when the key is something else by now

local key, verb = KEYS[1], ARGV[2]
local found
if verb == 'HSET' or verb == 'HDEL' then
  found = redis.pcall('HGET', key, ARGV[3])
elseif verb == 'ZADD' then
  found = redis.pcall('ZSCORE', key, ARGV[4])
elseif verb == 'LSET' then
  found = redis.pcall('LINDEX', key, ARGV[3])
elseif verb == 'LPOP' or verb == 'RPOP' then
  found = redis.pcall('LINDEX', key, verb == 'LPOP' and 0 or -1)
elseif verb == 'ZREM' then
  found = redis.pcall('ZSCORE', key, ARGV[3])
else
  found = redis.pcall('GET', key)
end
local is_score = verb == 'ZADD' or verb == 'ZREM'
if type(found) ~= 'string' then
  return 0
end
if found ~= ARGV[1] and not (is_score and tonumber(found) == tonumber(ARGV[1])) then
  return 0
end
redis.call(verb, key, unpack(ARGV, 3))
return 1
