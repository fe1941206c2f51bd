-- Give a key an expiry if it has none, or one that is too long.
--
-- KEYS[1]  the key
-- ARGV[1]  the longest it may have left, in ms
-- ARGV[2]  what it gets, in ms
-- Output   what it had left, in ms, -1 for ever; -2 when nothing was to be done

local left = redis.call('PTTL', KEYS[1])
if left == -1 or left > tonumber(ARGV[1]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return left
end
return -2
