-- Write a whole key, unless there is one. If a command fails, the key is left as it was.
--
-- KEYS[1]  the key
-- ARGV[1]  1 to write it in place of one that exists, else 0
-- ARGV[2]  the commands in MessagePack: of each its verb, the subcommand of XGROUP, and the words after the key
-- ARGV[3]  the type that the key must have then, which a dump may not have
-- Output   1 when it was written, 0 when it exists, -1 when it has another type

local before, left
if redis.call('EXISTS', KEYS[1]) == 1 then
  if ARGV[1] ~= '1' then
    return 0
  end
  before, left = redis.call('DUMP', KEYS[1]), redis.call('PTTL', KEYS[1])
  redis.call('UNLINK', KEYS[1])
end

local function undo()
  redis.call('UNLINK', KEYS[1])
  if before then
    redis.call('RESTORE', KEYS[1], math.max(left, 0), before)
  end
end

for _, command in ipairs(cmsgpack.unpack(ARGV[2])) do
  local done
  if command[2] == '' then
    done = redis.pcall(command[1], KEYS[1], unpack(command[3]))
  else
    done = redis.pcall('XGROUP', command[2], KEYS[1], unpack(command[3]))
  end
  if type(done) == 'table' and done.err then
    undo()
    return done
  end
end
local found = redis.call('TYPE', KEYS[1]).ok
if found ~= ARGV[3] and found ~= 'none' then
  undo()
  return -1
end
return 1
