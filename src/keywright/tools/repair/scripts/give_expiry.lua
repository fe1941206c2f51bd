-- Give a key an expiry if it has none, or one that is too long.
--
-- KEYS[1]  the key
-- ARGV[1]  the longest it may have left, in ms
-- ARGV[2]  what it gets, in ms
-- Output   1 when it was given, 0 when nothing was to be done

local left = redis.call('PTTL', KEYS[1])
if left == -1 or left > tonumber(ARGV[1]) then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0
