-- Hold a string for longer, if it is still the holder's.
--
-- KEYS[1]  the string that names the holder
-- ARGV[1]  the holder's stamp
-- ARGV[2]  how long it is held from now on, in ms
-- Output   1 when it was extended, 0 when it is free or someone else's

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
