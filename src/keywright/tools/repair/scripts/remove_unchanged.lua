-- Remove a key if it is still what was looked at.
--
-- KEYS[1]  the key
-- ARGV[1]  the SHA-1 of its serialisation when it was looked at, in hex
-- Output   1 when it was removed, 0 when it changed meanwhile or is gone

local stored = redis.call('DUMP', KEYS[1])
if stored and redis.sha1hex(stored) == ARGV[1] then
  return redis.call('UNLINK', KEYS[1])
end
return 0
