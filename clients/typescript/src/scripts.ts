/** Written by scripts/typescript_scripts.py from src/keywright/keyspace/scripts: do not edit. */

export interface Script {
  readonly source: string;
  /** The SHA-1 of the source, by which a server knows it. */
  readonly digest: string;
}

export const ACQUIRE: Script = {
  digest: "a784eba0d17ce0dd470365257341bec1ef546a0c",
  source: `local found = redis.call('GET', KEYS[1])
if found and found ~= ARGV[1] then
  return 0
end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
`,
};

export const CLAIM_DUE: Script = {
  digest: "b67ad12b1ef4bacbd882e10d49ecf62359070067",
  source: `local function server_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local now = tonumber(ARGV[1]) or server_ms()
local held_until = string.format('%.0f', now + tonumber(ARGV[2]))
local due = redis.call(
  'ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now), 'LIMIT', 0, ARGV[3]
)

-- unpack takes at most about 8,000 values.
for first = 1, #due, 1000 do
  local moves = {}
  for i = first, math.min(first + 999, #due) do
    moves[#moves + 1] = held_until
    moves[#moves + 1] = due[i]
  end
  redis.call('ZADD', KEYS[1], unpack(moves))
end

table.insert(due, 1, held_until)
return due
`,
};

export const COMMIT: Script = {
  digest: "234004602103363db8b1c16ac54a8ec58a41215f",
  source: `local position = 3

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
`,
};

export const EXPIRE_ONCE: Script = {
  digest: "8374defa0ef9cde1bd0d76cfa66057549054da8e",
  source: `if redis.call('PTTL', KEYS[1]) == -1 then
  return redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return 0
`,
};

export const EXTEND: Script = {
  digest: "ce099570999823771126e1be74b21260bbcea665",
  source: `if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`,
};

export const RELEASE: Script = {
  digest: "d4b84f3956ba3102842fbfa7e71de50a16296704",
  source: `if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('UNLINK', KEYS[1])
`,
};

export const SETTLE_DUE: Script = {
  digest: "3c56f4325796e446ae7fe407b81578853034e5c7",
  source: `local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) ~= tonumber(ARGV[2]) then
  return 0
end
if ARGV[3] == '' then
  redis.call('ZREM', KEYS[1], ARGV[1])
else
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
end
return 1
`,
};
