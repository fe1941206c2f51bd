-- Free a string, if it is still the holder's.
--
-- KEYS[1]  the string that names the holder
-- ARGV[1]  the holder's stamp
-- Output   1 when it was freed, 0 when it is free already or someone else's

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('UNLINK', KEYS[1])
