-- Bring a key from its former name to its present one.
--
-- KEYS[1]  the present name
-- KEYS[2]  the former name
-- ARGV[1]  1 to remove the former name where both are there and differ
-- Output   0 nothing was under the former name, 1 it was moved, 2 both are there and differ

if redis.call('EXISTS', KEYS[2]) == 0 then
  return 0
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('RENAME', KEYS[2], KEYS[1])
  return 1
end
if ARGV[1] == '1' or redis.call('DUMP', KEYS[1]) == redis.call('DUMP', KEYS[2]) then
  redis.call('UNLINK', KEYS[2])
  return 1
end
return 2
