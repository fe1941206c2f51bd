-- Return a dead letter to its stream atomically, for its own group only, unless it is gone already.
--
-- KEYS[1]  the dead letters of a group
-- KEYS[2]  the stream
-- ARGV[1]  the id of the dead letter
-- ARGV[2]  the body
-- ARGV[3]  the group
-- Output   1 when it was returned, 0 when it was gone

if redis.call('XDEL', KEYS[1], ARGV[1]) == 0 then
  return 0
end
redis.call('XADD', KEYS[2], '*', 'data', ARGV[2], 'only', ARGV[3])
return 1
