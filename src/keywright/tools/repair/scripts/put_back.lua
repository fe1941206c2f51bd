-- Take back what a repair wrote to a string, if it is still that.
--
-- KEYS[1]  the key
-- ARGV[1]  what the repair wrote
-- ARGV[2]  the command that takes it back, its other words behind it
-- Output   1 when it was sent, 0 when the key is something else by now

if redis.call('TYPE', KEYS[1]).ok ~= 'string' or redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call(ARGV[2], KEYS[1], unpack(ARGV, 3))
return 1
