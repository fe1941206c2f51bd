-- Move a message to the dead letters atomically, unless it is settled already.
--
-- KEYS[1]  the stream
-- KEYS[2]  the dead letters of its group
-- ARGV[1]  the group
-- ARGV[2]  the id of the entry
-- ARGV[3…] fields and values of the dead letter
-- Output   1 when it was moved, 0 when it was not pending

if redis.call('XACK', KEYS[1], ARGV[1], ARGV[2]) == 0 then
  return 0
end
redis.call('XADD', KEYS[2], '*', unpack(ARGV, 3))
return 1
