-- Take a string for one holder, if it is free or theirs already.
--
-- KEYS[1]  the string that names the holder
-- ARGV[1]  the holder's stamp
-- ARGV[2]  how long it is held, in ms
-- Output   1 when it is held now, 0 when it is someone else's

local found = redis.call('GET', KEYS[1])
if found and found ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
