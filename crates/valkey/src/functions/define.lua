-- Definitions: what queues, exchanges and the like there are, as a log that every process reads. Each entry says what became true; what became true before the base stands there.
--
--   KEYS[1]        `version` of the last entry and its `tag`, `base`: the version of what stands in the base and `root`: its tag, `incarnation`   hash
--   KEYS[1]:log    the entries after the base, in order       list
--   KEYS[1]:tags   their tags                                 list
--   KEYS[1]:base   what was true then                          string
--   KEYS[1]:roll   until when processes are known to be there  sorted set, scores are milliseconds
-- A new entry is told on the channel KEYS[1].

-- Where a log is in its history is its version and its tag: that of an entry is made of it and of the tag before it, so two logs of one tag are the same. A log that went back to what it was (a snapshot, a replica that
-- was behind), and then on, has the same versions and other tags. The first tag is the incarnation: random, and by it a log that began anew is told from this one.
local function defined(base)
  local got = redis.call('HMGET', base, 'version', 'base', 'incarnation', 'tag', 'root')
  local log = { version = tonumber(got[1] or 0), from = tonumber(got[2] or 0), incarnation = got[3] or '', tag = got[4] or '', root = got[5] or '' }
  if log.incarnation ~= '' then
    local count = log.version - log.from
    local is_there = redis.call('LLEN', base .. ':log') == count and redis.call('LLEN', base .. ':tags') == count
    log.is_damaged = not is_there or (log.from > 0 and redis.call('EXISTS', base .. ':base') == 0)
  end
  return log
end

-- The tag of a version, where it is known.
local function tag_at(base, log, version)
  if version == log.from then return log.root end
  if version < log.from or version > log.version then return false end
  return redis.call('LINDEX', base .. ':tags', version - log.from - 1)
end

-- Tells whoever listens; they look by themselves, too. Answers how many do.
local function tell(base, version)
  local told = redis.pcall('SPUBLISH', base, text(version))
  return type(told) == 'number' and told or 0
end

-- Where the log is now, as answers say it, and whether some of it is lost (1 or 0).
local function where(log) return { log.version, log.tag, log.incarnation, log.is_damaged and 1 or 0 } end

-- Gives a log that a version without tags wrote its incarnation, and its entries their tags.
local function tag_all(base, log, incarnation)
  local tag = incarnation
  for _, entry in ipairs(redis.call('LRANGE', base .. ':log', 0, -1)) do
    tag = redis.sha1hex(tag .. entry)
    redis.call('RPUSH', base .. ':tags', tag)
  end
  redis.call('HSET', base, 'incarnation', incarnation, 'root', incarnation, 'tag', tag)
  return defined(base)
end

-- Adds an entry behind this version, if that is the last one. Arguments: the version and its tag, the entry. Answers where the log is now, and 1 if the entry is the last one: also where it was added before, and the answer
-- lost.
local function define(keys, args)
  local base = keys[1]
  local log, expected = defined(base), tonumber(args[1])
  if log.is_damaged then return { where(log), 0 } end
  local is_again = log.version == expected + 1 and redis.call('LINDEX', base .. ':log', -1) == args[3]
  if is_again and tag_at(base, log, expected) == args[2] then return { where(log), 1 } end
  if log.version ~= expected or log.tag ~= args[2] or log.tag == '' then return { where(log), 0 } end
  log.version, log.tag = expected + 1, redis.sha1hex(log.tag .. args[3])
  redis.call('RPUSH', base .. ':log', args[3])
  redis.call('RPUSH', base .. ':tags', log.tag)
  redis.call('HSET', base, 'version', text(log.version), 'tag', log.tag)
  tell(base, log.version)
  return { where(log), 1 }
end

-- What was said after this version. Arguments: the version and its tag, most entries. Answers where the log is, the version of the base and its tag and what it says (only if the log does not go on from where the caller
-- is), and entries with their tags.
local function read_defined(keys, args)
  local base = keys[1]
  local log, since, most = defined(base), tonumber(args[1]), tonumber(args[3])
  if log.is_damaged then return { where(log), 0, '', false, {}, {} } end
  local whole = false
  if tag_at(base, log, since) ~= args[2] then
    whole = redis.call('GET', base .. ':base') or ''
    since = log.from
  end
  local from, to = since - log.from, since - log.from + most - 1
  return { where(log), since, log.root, whole, redis.call('LRANGE', base .. ':log', from, to), redis.call('LRANGE', base .. ':tags', from, to) }
end

-- Says all that is true at a version in one, and forgets the entries up to it. Arguments: the version and its tag, what is true.
local function rebase(keys, args)
  local base = keys[1]
  local log, at = defined(base), tonumber(args[1])
  if log.is_damaged or at <= log.from or tag_at(base, log, at) ~= args[2] then return 0 end
  redis.call('SET', base .. ':base', args[3])
  redis.call('LTRIM', base .. ':log', at - log.from, -1)
  redis.call('LTRIM', base .. ':tags', at - log.from, -1)
  redis.call('HSET', base, 'base', text(at), 'root', args[2])
  return 1
end

-- Has the log be of this version, and say this: it begins, or it went back or is damaged, and whoever asks knows what it said, or that places are of later versions. Arguments: where it is now (the version and its tag, or 0 and nothing), the incarnation,
-- the version and its tag, what is true. Answers 1, or 0 where it is elsewhere by now.
local function restate(keys, args)
  local base = keys[1]
  local log = defined(base)
  if log.version ~= tonumber(args[1]) or log.tag ~= args[2] then return 0 end
  redis.call('SET', base .. ':base', args[6])
  redis.call('DEL', base .. ':log', base .. ':tags')
  redis.call('HSET', base, 'incarnation', args[3], 'version', args[4], 'base', args[4], 'tag', args[5], 'root', args[5])
  tell(base, tonumber(args[4]))
  return 1
end

-- A process is there, for so long from now, ms; 0: it is gone. Arguments: its name; how long; the incarnation of the definitions that it knows, or nothing; that which definitions of an older version are given. Answers whether
-- it was known before (1 or 0), how many others are there, those that are gone without a word, each until it is struck off (a process that says of another that it is gone), and how many processes hear that there are no
-- definitions, where there are none: they may know what they were.
local function enrol(keys, args)
  local base = keys[1]
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local roll = base .. ':roll'
  local name = args[1]
  local log = defined(base)
  if log.incarnation == '' and log.version > 0 then log = tag_all(base, log, args[4]) end
  local was_known = redis.call('ZSCORE', roll, name) and (args[3] == '' or args[3] == log.incarnation) and 1 or 0
  local hear = (log.incarnation == '' or log.is_damaged) and tell(base, 0) or 0
  if tonumber(args[2]) == 0 then redis.call('ZREM', roll, name) else redis.call('ZADD', roll, now + tonumber(args[2]), name) end
  local gone = redis.call('ZRANGE', roll, '-inf', text(now), 'BYSCORE', 'LIMIT', 0, 100)
  local others = redis.call('ZCOUNT', roll, '(' .. text(now), '+inf')
  if tonumber(args[2]) ~= 0 then others = others - 1 end
  return { was_known, others, gone, hear }
end

-- How a transaction over several places ends: as whoever asks first says. Arguments: `commit` or `abort`. Answers which.
local function decide(keys, args)
  redis.call('SET', keys[1], args[1], 'NX', 'PX', 86400000)
  return redis.call('GET', keys[1])
end

register_always('ot_define', define)
redis.register_function({ function_name = 'ot_defined', callback = read_defined, flags = { 'no-writes', 'allow-oom' } })
register_always('ot_rebase', rebase)
register_always('ot_restate', restate)
register_always('ot_enrol', enrol)
register_always('ot_decide', decide)
