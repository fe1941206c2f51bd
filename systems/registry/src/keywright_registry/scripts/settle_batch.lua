-- Delete a batch that the database has, unless another batch took its place.
--
-- KEYS[1]  the batch, a hash
-- ARGV[1]  its id
-- Output   1 if it was deleted, 0 if it was gone

if redis.call('HGET', KEYS[1], 'id') ~= ARGV[1] then
  return 0
end
return redis.call('UNLINK', KEYS[1])
