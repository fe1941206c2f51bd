-- End the claim on a member: remove it, or give it another due time, if the claim still stands.
--
-- KEYS[1]  the queue, a sorted set from member to due time in ms
-- ARGV[1]  the member
-- ARGV[2]  the end of the hold that the claim gave, in ms
-- ARGV[3]  the new due time in ms, or '' to remove the member
-- Output   1 when it was done, 0 when the claim ran out or was overridden

local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) ~= tonumber(ARGV[2]) then
  return 0
end
if ARGV[3] == '' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
end
return 1
