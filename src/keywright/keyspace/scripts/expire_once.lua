-- Give a key an expiry unless it has one, so that the time counts from its first write.
--
-- KEYS[1]  the key, which the transaction has just written
-- ARGV[1]  the time to live in ms
-- Output   1 when it was given, 0 when the key had one already, or is gone

if redis.call('PTTL', KEYS[1]) == -1 then
  return redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return 0
