-- One step of carrying a key to another slot: take it, write the copy, drop what was copied.
--
-- KEYS[1]  the key
-- ARGV[1]  'take', 'copy' or 'drop'
-- ARGV[2]  copy: the serialised value; drop: the digest it must still have
-- ARGV[3]  copy: when it expires in ms, or 0
-- Output   take: {serialised value, digest, when it expires in ms or 0}, {} when the key does not exist;
--          copy: the digest of the copy, '' when the key was there already;
--          drop: 1 when it is gone now, 0 when it changed and was left

local key = KEYS[1]

-- Sets and hashes are serialised in the order of their tables, which differs from node to node and changes
-- while a table grows: of these the content is digested, in order.
local function digest(payload)
  local kind = redis.call('TYPE', key).ok
  local parts
  if kind == 'set' then
    parts = redis.call('SMEMBERS', key)
  elseif kind == 'hash' then
    local flat = redis.call('HGETALL', key)
    parts = {}
    for i = 1, #flat, 2 do
      parts[#parts + 1] = #flat[i] .. ':' .. flat[i] .. flat[i + 1]
    end
  else
    return redis.sha1hex(payload)
  end
  table.sort(parts)
  for i = 1, #parts do
    parts[i] = #parts[i] .. ':' .. parts[i]
  end
  return redis.sha1hex(table.concat(parts))
end

if ARGV[1] == 'copy' then
  if redis.call('EXISTS', key) == 1 then
    return ''
  end
  redis.call('RESTORE', key, ARGV[3], ARGV[2], 'ABSTTL')
  return digest(ARGV[2])
end

local payload = redis.call('DUMP', key)
if ARGV[1] == 'take' then
  if not payload then
    return {}
  end
  local left = redis.call('PTTL', key)
  local expires = 0
  if left >= 0 then
    local now = redis.call('TIME')
    expires = now[1] * 1000 + math.floor(now[2] / 1000) + left
  end
  return {payload, digest(payload), expires}
end

if payload and digest(payload) ~= ARGV[2] then
  return 0
end
redis.call('UNLINK', key)
return 1
