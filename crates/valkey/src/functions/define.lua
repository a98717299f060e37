-- Definitions: what queues, exchanges and the like there are, as a log that every process reads. Each entry says what became true; what became true before the base stands there.
--
--   KEYS[1]        what is counted: `version` of the last entry, `base` of what stands in the base   hash
--   KEYS[1]:log    the entries after the base, in order       list
--   KEYS[1]:base   what was true then                          string
--   KEYS[1]:roll   until when processes are known to be there  sorted set, scores are milliseconds
-- A new entry is told on the channel KEYS[1].

local function defined(base)
  local got = redis.call('HMGET', base, 'version', 'base')
  return tonumber(got[1] or 0), tonumber(got[2] or 0)
end

-- Adds an entry behind this version, if that is the last one. Arguments: the version, the entry. Answers the version that is the last one now, and 1 if the entry is that: also where it was
-- added before, and the answer lost.
local function define(keys, args)
  local base = keys[1]
  local version, from = defined(base)
  local expected = tonumber(args[1])
  if version == expected + 1 and expected >= from and redis.call('LINDEX', base .. ':log', -1) == args[2] then return { version, 1 } end
  if version ~= expected then return { version, 0 } end
  redis.call('RPUSH', base .. ':log', args[2])
  redis.call('HSET', base, 'version', text(version + 1))
  redis.call('SPUBLISH', base, text(version + 1))
  return { version + 1, 1 }
end

-- What was said after this version. Arguments: the version, most entries. Answers the last version, the version of the base and what it says (only if more than the base is asked for), and entries.
local function read_defined(keys, args)
  local base = keys[1]
  local version, from = defined(base)
  local since, most = tonumber(args[1]), tonumber(args[2])
  local whole = false
  if since < from or since > version then
    whole = redis.call('GET', base .. ':base') or ''
    since = from
  end
  return { version, since, whole, redis.call('LRANGE', base .. ':log', since - from, since - from + most - 1) }
end

-- Says all that is true at a version in one, and forgets the entries up to it. Arguments: the version, what is true.
local function rebase(keys, args)
  local base = keys[1]
  local version, from = defined(base)
  local at = tonumber(args[1])
  if at <= from or at > version then return 0 end
  redis.call('SET', base .. ':base', args[2])
  redis.call('LTRIM', base .. ':log', at - from, -1)
  redis.call('HSET', base, 'base', text(at))
  return 1
end

-- A process is there, for so long from now, ms; 0: it is gone. Arguments: its name; how long. Answers whether it was known before (1 or 0), how many others are there, and those that are gone
-- without a word, each until it is struck off (a process that says of another that it is gone).
local function enrol(keys, args)
  local base = keys[1]
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local roll = base .. ':roll'
  local name = args[1]
  local was_known = redis.call('ZSCORE', roll, name) and 1 or 0
  if tonumber(args[2]) == 0 then redis.call('ZREM', roll, name) else redis.call('ZADD', roll, now + tonumber(args[2]), name) end
  local gone = redis.call('ZRANGE', roll, '-inf', text(now), 'BYSCORE', 'LIMIT', 0, 100)
  local others = redis.call('ZCOUNT', roll, '(' .. text(now), '+inf')
  if tonumber(args[2]) ~= 0 then others = others - 1 end
  return { was_known, others, gone }
end

-- How a transaction over several places ends: as whoever asks first says. Arguments: `commit` or `abort`. Answers which.
local function decide(keys, args)
  redis.call('SET', keys[1], args[1], 'NX', 'PX', 86400000)
  return redis.call('GET', keys[1])
end

register_always('ot_define', define)
redis.register_function({ function_name = 'ot_defined', callback = read_defined, flags = { 'no-writes', 'allow-oom' } })
register_always('ot_rebase', rebase)
register_always('ot_enrol', enrol)
register_always('ot_decide', decide)
