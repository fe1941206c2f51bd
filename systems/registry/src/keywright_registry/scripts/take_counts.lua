-- Move both counters into a batch for the database, or return the batch that is still under way.
--
-- KEYS[1]  pulls
-- KEYS[2]  pushes
-- KEYS[3]  the path of the repository
-- KEYS[4]  the batch, a hash of id, path, pulls and pushes
-- ARGV[1]  the id of a new batch
-- ARGV[2]  the path, or '' to take it from KEYS[3]
-- Output   {id, path, pulls, pushes}; nil if both counters are zero or the path is unknown

local under_way = redis.call('HMGET', KEYS[4], 'id', 'path', 'pulls', 'pushes')
if under_way[1] then
  return under_way
end
local pulls, pushes = redis.call('GET', KEYS[1]) or '0', redis.call('GET', KEYS[2]) or '0'
local path = ARGV[2] ~= '' and ARGV[2] or redis.call('GET', KEYS[3])
if not path or (pulls == '0' and pushes == '0') then
  return false
end
redis.call('HSET', KEYS[4], 'id', ARGV[1], 'path', path, 'pulls', pulls, 'pushes', pushes)
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
return {ARGV[1], path, pulls, pushes}
