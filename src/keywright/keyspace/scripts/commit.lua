-- Compare-and-set over several keys: test every check, then apply every write.
--
-- KEYS    the keys that checks and writes refer to by number
-- ARGV    number of checks, number of writes,
--         then for each check: kind, key number, count, count arguments,
--         then for each write: command, key number, count, count arguments
-- Output  {1, reply, …} when applied; {0, number of the failed check} when nothing was written

local position = 3

local function next_item()
  local word, key, count = ARGV[position], KEYS[tonumber(ARGV[position + 1])], tonumber(ARGV[position + 2])
  local arguments = {}
  for i = 1, count do
    arguments[i] = ARGV[position + 2 + i]
  end
  position = position + 3 + count
  return word, key, arguments
end

local holds = {
  ['any'] = function(key) return true end,
  ['absent'] = function(key) return redis.call('EXISTS', key) == 0 end,
  ['exists'] = function(key) return redis.call('EXISTS', key) == 1 end,
  ['equals'] = function(key, a) return redis.call('GET', key) == a[1] end,
  ['field'] = function(key, a) return redis.call('HGET', key, a[1]) == a[2] end,
  ['field-absent'] = function(key, a) return redis.call('HEXISTS', key, a[1]) == 0 end,
  ['field-vacant'] = function(key, a)
    local found = redis.call('HGET', key, a[1])
    return not found or found == a[2]
  end,
  ['member'] = function(key, a) return redis.call('SISMEMBER', key, a[1]) == 1 end,
  ['no-member'] = function(key, a) return redis.call('SISMEMBER', key, a[1]) == 0 end,
  ['members'] = function(key, a)
    if redis.call('SCARD', key) ~= #a then
      return false
    end
    for i = 1, #a do
      if redis.call('SISMEMBER', key, a[i]) == 0 then
        return false
      end
    end
    return true
  end,
  ['score'] = function(key, a) return redis.call('ZSCORE', key, a[1]) == a[2] end,
  ['no-score'] = function(key, a) return not redis.call('ZSCORE', key, a[1]) end,
  ['items'] = function(key, a)
    return #redis.call('LPOS', key, a[1], 'COUNT', 0) == tonumber(a[2])
  end,
  ['entry'] = function(key, a) return #redis.call('XRANGE', key, a[1], a[1]) == 1 end,
  ['no-entry'] = function(key, a) return #redis.call('XRANGE', key, a[1], a[1]) == 0 end,
  ['fits'] = function(key, a)
    local found = redis.call('TYPE', key).ok
    return found == 'none' or found == a[1]
  end,
  ['serialised'] = function(key, a)
    local dump = redis.call('DUMP', key)
    return dump and redis.sha1hex(dump) == a[1]
  end,
  ['hash'] = function(key, a)
    if redis.call('HLEN', key) * 2 ~= #a then
      return false
    end
    for i = 1, #a, 2 do
      if redis.call('HGET', key, a[i]) ~= a[i + 1] then
        return false
      end
    end
    return true
  end,
}

for number = 1, tonumber(ARGV[1]) do
  local kind, key, arguments = next_item()
  if not holds[kind](key, arguments) then
    return {0, number}
  end
end

local function write(command, key, arguments)
  -- An expiry that counts from the first write; Redis 6.2 has no NX here.
  if command == 'PEXPIRE' and arguments[2] == 'NX' then
    return redis.call('PTTL', key) == -1 and redis.call('PEXPIRE', key, arguments[1]) or 0
  end
  return redis.call(command, key, unpack(arguments))
end

local replies = {1}
for _ = 1, tonumber(ARGV[2]) do
  local command, key, arguments = next_item()
  replies[#replies + 1] = write(command, key, arguments)
end
return replies
