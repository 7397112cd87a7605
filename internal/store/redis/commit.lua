-- Applies one batch whole, or nothing of it.
-- KEYS  every key that is used.
-- ARGV  the batch's revision, then operations: guard KEY REV | put KEY VALUE | del KEY | drop KEY MEMBER |
--       add KEY SCORE MEMBER | publish CHANNEL BODY.   KEY is a position in KEYS.
-- Returns {1, why a hint was refused or ''} applied, {0} a guard does not hold, {2} applied before.
-- A script is not rolled back: all that can fail is asked for in the first pass, before anything is written.
local width = { guard = 3, put = 3, del = 2, drop = 3, add = 4, publish = 3 }
local conflict, i = false, 2
while i <= #ARGV do
  local op = ARGV[i]
  local key = op ~= 'publish' and KEYS[tonumber(ARGV[i + 1])]
  if op == 'put' then
    if redis.call('HGET', key, 'r') == ARGV[1] then return { 2 } end
  elseif op == 'del' then
    redis.call('HGET', key, 'r') -- fails on an index
  elseif op == 'guard' then
    if (redis.call('HGET', key, 'r') or '') ~= ARGV[i + 2] then conflict = true end
  elseif op ~= 'publish' then
    redis.call('ZRANGE', key, 0, 0) -- fails on a document
  end
  i = i + width[op]
end
if conflict then return { 0 } end
local refused = ''
i = 2
while i <= #ARGV do
  local op = ARGV[i]
  local key = op ~= 'publish' and KEYS[tonumber(ARGV[i + 1])]
  if op == 'put' then
    redis.call('HSET', key, 'r', ARGV[1], 'v', ARGV[i + 2])
  elseif op == 'del' then
    redis.call('DEL', key)
  elseif op == 'drop' then
    redis.call('ZREM', key, ARGV[i + 2])
  elseif op == 'add' then
    redis.call('ZADD', key, ARGV[i + 2], ARGV[i + 3])
  elseif op == 'publish' then
    local reply = redis.pcall('PUBLISH', ARGV[i + 1], ARGV[i + 2])
    if type(reply) == 'table' and reply.err then refused = reply.err end
  end
  i = i + width[op]
end
return { 1, refused }
