-- Store a log position if it is beyond the stored one.
--
-- KEYS[1]  the position, two halves of up to 32 bits in hexadecimal: 16/B374D848
-- ARGV[1]  the new position in the same form
-- ARGV[2]  its time to live in ms; '' for no expiry
-- Output   1 when it was written, 0 when it is not beyond

-- 64 bits do not fit into a Lua number, each half does. A malformed position is nil, and overwritten.
local function halves(position)
  local high, low = string.match(position or '', '^(%x+)/(%x+)$')
  if high and #high <= 8 and #low <= 8 then
    return tonumber(high, 16), tonumber(low, 16)
  end
end

local high, low = halves(redis.call('GET', KEYS[1]))
local new_high, new_low = halves(ARGV[1])
if high and (new_high < high or (new_high == high and new_low <= low)) then
  return 0
end
if ARGV[2] == '' then
  redis.call('SET', KEYS[1], ARGV[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return 1
