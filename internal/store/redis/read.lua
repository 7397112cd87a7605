-- KEYS  the documents.
-- Returns TIME (seconds, microseconds), then revision and value of every document: one moment, one node, one clock.
-- The revision of an absent document is ''.
local t = redis.call('TIME')
local reply = { t[1], t[2] }
for _, key in ipairs(KEYS) do
  reply[#reply + 1] = redis.call('HGET', key, 'r') or ''
  reply[#reply + 1] = redis.call('HGET', key, 'v') or ''
end
return reply
