-- Store a GUILD_CREATE in the DRC layout, split on the server.
-- KEYS   none: the names depend on the payload, so this cannot run on a cluster
-- ARGV   the payload, the prefix of all names, the prefix of the indexes
-- Output the number of members
-- cjson turns [] into {} and integers of more than 14 digits into floats, so the stored data differs
-- from the payload. It is used for timing only.
local guild = cjson.decode(ARGV[1])
local lead = ARGV[2]
local private = ARGV[3]
local id = guild.id

local function fill(name, children, by)
    redis.call('DEL', lead .. name .. ':' .. id)
    for _, child in ipairs(children or {}) do
        redis.call('HSET', lead .. name .. ':' .. id, child[by], cjson.encode(child))
    end
end

local function keep_user(holder, field)
    local user = holder[field]
    if type(user) == 'table' then
        redis.call('SET', lead .. 'users:' .. user.id, cjson.encode(user))
        holder[field] = user.id
    end
end

for _, channel in ipairs(guild.channels or {}) do
    channel.guild_id = id
end
for _, state in ipairs(guild.voice_states or {}) do
    state.guild_id = id
end
for _, name in ipairs({'emojis', 'stickers'}) do
    for _, child in ipairs(guild[name] or {}) do
        keep_user(child, 'user')
    end
end
for _, event in ipairs(guild.guild_scheduled_events or {}) do
    keep_user(event, 'creator')
end
fill('roles', guild.roles, 'id')
fill('emojis', guild.emojis, 'id')
fill('stickers', guild.stickers, 'id')
fill('scheduled-events', guild.guild_scheduled_events, 'id')
fill('channels', guild.channels, 'id')
fill('voice-states', guild.voice_states, 'user_id')

local members = guild.members or {}
local listed = {}
for _, member in ipairs(members) do
    listed[member.user.id] = true
end
for _, person in ipairs(redis.call('SMEMBERS', lead .. 'members:' .. id)) do
    if not listed[person] then
        redis.call('DEL', lead .. 'members:' .. id .. ':' .. person, lead .. 'presence:' .. id .. ':' .. person)
        redis.call('SREM', lead .. 'members:' .. id, person)
        redis.call('SREM', private .. 'presences:' .. id, person)
        redis.call('HDEL', lead .. 'voice-states:' .. id, person)
    end
end
for _, member in ipairs(members) do
    local user = member.user
    member.user = nil
    redis.call('SET', lead .. 'users:' .. user.id, cjson.encode(user))
    redis.call('SET', lead .. 'members:' .. id .. ':' .. user.id, cjson.encode(member))
    redis.call('SADD', lead .. 'members:' .. id, user.id)
end

for _, presence in ipairs(guild.presences or {}) do
    local user = presence.user.id
    presence.user = user
    presence.guild_id = id
    redis.call('SET', lead .. 'presence:' .. id .. ':' .. user, cjson.encode(presence))
    redis.call('SADD', private .. 'presences:' .. id, user)
end

for _, thread in ipairs(guild.threads or {}) do
    thread.member = nil
    redis.call('SET', lead .. 'threads:' .. thread.id, cjson.encode(thread))
    redis.call('HSET', private .. 'threads:' .. id, thread.id, thread.parent_id)
end

for _, channel in ipairs(redis.call('SMEMBERS', private .. 'stage-instances:' .. id)) do
    redis.call('DEL', lead .. 'stage-instances:' .. channel)
end
redis.call('DEL', private .. 'stage-instances:' .. id)
for _, stage in ipairs(guild.stage_instances or {}) do
    redis.call('SET', lead .. 'stage-instances:' .. stage.channel_id, cjson.encode(stage))
    redis.call('SADD', private .. 'stage-instances:' .. id, stage.channel_id)
end

local count = #members
for _, name in ipairs({'roles', 'emojis', 'stickers', 'guild_scheduled_events', 'channels', 'voice_states',
    'members', 'presences', 'threads', 'stage_instances', 'welcome_screen'}) do
    guild[name] = nil
end
redis.call('SET', lead .. 'guilds:' .. id, cjson.encode(guild))
redis.call('SADD', lead .. 'guilds', id)
return count
