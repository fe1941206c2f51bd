-- Put back an entry that a repair removed: of a list or a stream into its place, of others by a command.
--
-- KEYS[1]  the key
-- ARGV[1]  the time to live that the key had, in ms, or 0; for a key that went with its only entry
-- ARGV[2]  LINSERT, then the item and its places; XADD, then the id and the members, also of an id that is
--          older than the last; or a command that adds an entry unless there is one, then its other words
-- Output   1 when it was put back, 0 when there is such an entry

local MOST = 4000 -- the server's Lua takes at most about 8,000 values in one unpack

local function insert_items(key, item)
  if #redis.call('LPOS', key, item, 'COUNT', 0) > 0 then
    return 0
  end
  local first = tonumber(ARGV[4])
  local ttl = redis.call('PTTL', key)
  local behind = redis.call('LRANGE', key, first, -1)
  for _ = 4, #ARGV do
    redis.call('RPUSH', key, item) -- what is refused is refused here, while nothing is lost
  end
  if #behind == 0 then
    return 1
  end
  local items, taken = {}, 0
  for i = 4, #ARGV do
    while first + #items < tonumber(ARGV[i]) and taken < #behind do
      taken = taken + 1
      items[#items + 1] = behind[taken]
    end
    items[#items + 1] = item
  end
  for i = taken + 1, #behind do
    items[#items + 1] = behind[i]
  end
  if first == 0 then
    redis.call('DEL', key)
  else
    redis.call('LTRIM', key, 0, first - 1)
  end
  for i = 1, #items, MOST do
    redis.call('RPUSH', key, unpack(items, i, math.min(i + MOST - 1, #items)))
  end
  if ttl > 0 then
    redis.call('PEXPIRE', key, ttl)
  end
  return 1
end

local function insert_entry(key, id)
  if #redis.call('XRANGE', key, id, id) > 0 then
    return 0
  end
  local added = redis.pcall('XADD', key, id, unpack(ARGV, 4))
  if type(added) == 'string' then
    return 1
  end
  if not string.find(added.err, 'equal or smaller') then
    return added
  end
  local later = redis.call('XRANGE', key, '(' .. id, '+')
  for i = 1, #later do
    if #later[i][2] > MOST then
      return redis.error_reply('ERR a later entry is too large to be written again')
    end
  end
  local stream = {}
  local flat = redis.call('XINFO', 'STREAM', key)
  for i = 1, #flat, 2 do
    stream[flat[i]] = flat[i + 1]
  end
  local last, deleted = stream['last-generated-id'], stream['max-deleted-entry-id']
  local before = redis.call('XREVRANGE', key, '(' .. id, '-', 'COUNT', 1)
  local lowest = before[1] and before[1][1] or '0-0'
  if deleted then -- since Redis 7 no id below that of a deleted entry can become the last
    if lowest == '0-0' then
      lowest = '0-1'
    end
    if id == '0-1' then
      return 0
    end
  end
  redis.call('XSETID', key, last)
  for i = 1, #later do
    redis.call('XDEL', key, later[i][1])
  end
  if deleted then
    redis.call('XSETID', key, last, 'MAXDELETEDID', '0-1')
  end
  redis.call('XSETID', key, lowest)
  redis.call('XADD', key, id, unpack(ARGV, 4))
  for i = 1, #later do
    redis.call('XADD', key, later[i][1], unpack(later[i][2]))
  end
  if deleted then
    redis.call('XSETID', key, last, 'ENTRIESADDED', stream['entries-added'], 'MAXDELETEDID', deleted)
  else
    redis.call('XSETID', key, last)
  end
  return 1
end

local key, verb = KEYS[1], ARGV[2]
local gone = redis.call('EXISTS', key) == 0
local reply
if verb == 'LINSERT' then
  reply = insert_items(key, ARGV[3])
elseif verb == 'XADD' then
  reply = insert_entry(key, ARGV[3])
else
  reply = redis.call(verb, key, unpack(ARGV, 3))
end
if type(reply) == 'table' and reply.err then
  return reply
end
if not reply or reply == 0 then
  return 0
end
if gone and tonumber(ARGV[1]) > 0 then
  redis.call('PEXPIRE', key, ARGV[1])
end
return 1
