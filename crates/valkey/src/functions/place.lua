-- One place: what a partition of a queue holds, read when it is needed and written once, when the call is over.
--
-- All keys begin with the same base, which has the hash tag, KEYS[1]:
--   :c  what holds for the place, and its counters       hash
--   :m  messages by sequence                              hash, each an array packed as MessagePack
--   :b  what they say                                     hash
--   :o  what is ready, in the order in which it goes      sorted set, equal scores, members are the rank of the lane, the sequence
--   :d  delayed  :l  leased  :x  dead letters             sorted sets, equal scores, members are sequences
--   :t  what happens by itself, by when                   sorted set, scores are milliseconds
--   :i  sequences by id    :k  sequences by key, where only the newest of a key stays
--   :n  messages by lane   :g  gauges and counters of lanes
--   :h  leases that end with their holders                sorted set, equal scores, members are holder, a zero, sequence
--   :q  until when holders are known to be there          sorted set, scores are milliseconds
--   :v  what is prepared, by transaction                  hash
--   :vt when its end is overdue                            sorted set, scores are milliseconds
--   :e  what has left, by the number of its leave         hash, each an array packed as MessagePack
--   :el in which order                                    sorted set, equal scores, members are numbers
--   :j  what came of messages of other places, by the leave  hash
--   :jt when                                              sorted set, scores are milliseconds
--   :r, :ru  what producers numbered: see there
--   :s  of the first place: slots, see there
--   :a  of the first place: who consumes, see there
--   :gone  the version from which on its queue is not there, for a minute; all others but the next are gone then
--   :u:CALLER  what the last calls of a caller came to
-- Sequences are written as eight bytes, the greatest first, so that bytes stand in the order of numbers; and so are ranks, by which more urgent lanes come first.

local READY, DELAYED, LEASED, DEAD = 0, 1, 2, 3
-- Later than every moment that comes.
local NEVER = -1
local LANES_MAX = 256
-- Priorities of the scheme `signed` that have a name: of the lanes by priority one is kept free for each while there is none of it.
local KEPT = { -100, -50, 0, 50, 100 }
-- Calls of one caller that are remembered; so many may be under way at once.
local CALLS_MAX = 64
-- Messages that time moves in one call, that a lease passes because they have expired, or that a publish evicts; the rest is for the next.
local DUE_MAX = 128

-- A message.
local PRIORITY, GIVEN, SINCE, EXPIRES, BYTES, COUNT, STATE, AT, LEASE = 1, 2, 3, 4, 5, 6, 7, 8, 9
local ZERO = '\0'
local ID, KEY, HOLDER, WORK, DEATHS, RECORD, OUTDATED, PREPARED, ATTEMPTS, PROGRESS = 10, 11, 12, 13, 14, 15, 16, 17, 18, 19
-- Of one that came into its lane after the lanes were changed: the change and the level by which the lane is known outside, see LEFT.
local EPOCH, LEVEL = 20, 21
-- Of one whose publisher gave its key a weight.
local KEY_WEIGHT = 22

local function key_of(seq) return struct.pack('>I8', seq) end

local function seq_of(key) return (struct.unpack('>I8', key)) end

-- Numbers up to 2^53, all digits.
local function text(number) return string.format('%.0f', number) end

-- The earlier of two moments, either of which may never come.
local function earlier(a, b)
  if a == NEVER then return b end
  if b == NEVER then return a end
  return math.min(a, b)
end

local function is_over(moment, now) return moment ~= NEVER and moment <= now end

local NAMES = { order = ':o', delayed = ':d', leased = ':l', dead = ':x', alarms = ':t', offers = ':f', waiting = ':w', wakes = ':z', held = ':h', alive = ':q', prepared = ':vt', left = ':el', arrivals = ':jt', producers = ':ru' }
local STANDS = { [READY] = 'order', [DELAYED] = 'delayed', [LEASED] = 'leased', [DEAD] = 'dead' }

-- Settings as they were last read, by their bytes: most calls find there what the call before them has read. Nothing changes them.
local known, known_count = {}, 0

local function read_settings(packed)
  local settings = known[packed]
  if not settings then
    if known_count >= 1000 then known, known_count = {}, 0 end
    settings = cmsgpack.unpack(packed)
    known[packed] = settings
    known_count = known_count + 1
  end
  return settings
end

-- The first member of each lane in which something is ready, the most urgent lane first.
local function ready_heads(p)
  local heads, from = {}, '-'
  while true do
    local member = redis.call('ZRANGE', p.base .. ':o', from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
    if not member then return heads end
    heads[#heads + 1] = member
    from = '(' .. rank_in(member) .. '\255'
  end
end

-- The levels of these lanes.
local function ready_levels(p)
  local levels = ready_heads(p)
  for at, member in ipairs(levels) do levels[at] = level_of(member) end
  return levels
end

-- What goes next, if anything may.
local function head_of(p)
  if not p.keys then return redis.call('ZRANGE', p.base .. ':o', '0', '0')[1] end
  local offer = redis.call('ZRANGE', p.base .. ':f', 0, 0)[1]
  if not offer and p.left then return LEFT.first_ungrouped(p) end
  return offer and string.sub(offer, 1, -25) .. string.sub(offer, -8)
end

-- The least score of a set.
local function first_of(p, set) return tonumber(redis.call('ZRANGE', p.base .. NAMES[set], '0', '0', 'WITHSCORES')[2] or NEVER) end

-- Whether as many are leased as the queue lets.
local function is_at_most(p)
  local limit = p.settings.max_active
  return limit > 0 and p.leased >= SLOTS.most(p, '', limit)
end

-- The number after this one, which no other ever was: counted by the clock, since a place that went back to what it was (a snapshot, a replica that was behind) would count on from there.
local function next_number(p, last) return math.max(last + 1, p.us) end

local function next_lease(p)
  p.lease = next_number(p, p.lease)
  return p.lease
end

-- Whether a place is of another queue than is asked for. One that an older version made says of none.
local function is_anothers(of, asked) return of and asked ~= '' and of ~= asked end

-- The place of a call, or what to answer instead. The first three arguments of every call are whose place it is as the caller knows it (see `of` in terms.lua), the caller, and the number of the call; each may be
-- empty.
local function open(keys, args)
  local base = keys[1]
  local got = redis.call('HMGET', base .. ':c', 'of', 'settings', 'seq', 'lease', 'waiting', 'bytes', 'leased', 'now', 'turn', 'tokens', 'filled', 'calls', 'leaves', 'leaving', 'over', 'slots', 'heads', 'epoch', 'left', 'goes', 'ruled', 'rules')
  if not got[2] then return nil, { 'gone' } end
  if is_anothers(got[1], args[1]) then return nil, { 'another', got[1] } end
  local p = {
    base = base,
    settings = read_settings(got[2]),
    seq = tonumber(got[3]), lease = tonumber(got[4]),
    waiting = tonumber(got[5]), bytes = tonumber(got[6]), leased = tonumber(got[7]),
    turn = got[9] and cmsgpack.unpack(got[9]) or nil,
    tokens = tonumber(got[10] or 0), filled = tonumber(got[11] or 0),
    leaves = tonumber(got[13] or 0), leaving = tonumber(got[14] or 0), over = got[15],
    messages = {}, changed = {}, gone = {}, contents = {}, emptied = {}, leavers = {}, payers = {}, arrived = {},
    producers = {}, numbers = {}, has_numbered = {},
    ids = {}, values = {},
    sets = {}, has_changed = {}, touched = {}, gauges = {}, counts = {},
    groups = {}, passes = {}, times = {},
    caller = args[2], number = args[3], was = got,
  }
  p.keys = p.settings.keys
  LEFT.read(p, got[18], got[19], got[20])
  p.ruled, p.rules = tonumber(got[21] or 0), got[22] and cmsgpack.unpack(got[22]) or nil
  local time = redis.call('TIME')
  p.us = tonumber(time[1]) * 1000000 + tonumber(time[2])
  p.calls = next_number(p, tonumber(got[12] or 0))
  -- A replica that takes over may be behind.
  p.now = math.max(math.floor(p.us / 1000), tonumber(got[8]))
  if p.settings.by_clock then p.heads = got[17] or '' else p.head = head_of(p) end
  SLOTS.read(p, got[16])
  p.was_full = is_at_most(p)
  return p
end

-- What this very call came to before, if it was done already and its answer lost.
local function before(p)
  if p.number == '' then return nil end
  local kept = redis.call('HGET', p.base .. ':u:' .. p.caller, tonumber(p.number) % CALLS_MAX)
  if not kept then return nil end
  kept = cmsgpack.unpack(kept)
  if kept[1] == p.number then return kept[2] end
  return nil
end

local function remember(p, what)
  if p.number == '' then return end
  local calls = p.base .. ':u:' .. p.caller
  local slot = tonumber(p.number) % CALLS_MAX
  local is_new = redis.call('HSET', calls, slot, cmsgpack.pack({ p.number, what })) == 1
  if is_new or slot == 0 then redis.call('PEXPIRE', calls, 600000) end
end

-- ---- sorted sets, hashes and gauges, changed together at the end ----

local function put(p, set, member, score)
  local changes = p.sets[set] or {}
  p.sets[set] = changes
  p.has_changed[set] = true
  if set == 'order' then p.touched[rank_in(member)] = true end
  changes[member] = score
end

local function drop(p, set, member) put(p, set, member, false) end

local function in_pieces(command, key, values)
  for from = 1, #values, 4000 do redis.call(command, key, unpack(values, from, math.min(from + 3999, #values))) end
end

-- Has in the sets what was put into them, so that they can be asked.
local function sync(p)
  for set, changes in pairs(p.sets) do
    local add, remove = {}, {}
    for member, score in pairs(changes) do
      if score then
        add[#add + 1] = score
        add[#add + 1] = member
      else
        remove[#remove + 1] = member
      end
    end
    in_pieces('ZREM', p.base .. NAMES[set], remove)
    in_pieces('ZADD', p.base .. NAMES[set], add)
  end
  p.sets = {}
end

local function count(p, level, what, by)
  local gauges = p.gauges[level]
  if not gauges then
    gauges = {}
    p.gauges[level] = gauges
  end
  gauges[what] = (gauges[what] or 0) + by
end

-- Reads what a lane's gauge says now.
local function gauge(p, level, what)
  local gauges = p.gauges[level]
  return tonumber(redis.call('HGET', p.base .. ':g', text(level) .. ':' .. what) or 0) + (gauges and gauges[what] or 0)
end

-- ---- messages ----

local function message(p, key)
  local m = p.messages[key]
  if m == nil then
    local packed = redis.call('HGET', p.base .. ':m', key)
    m = packed and cmsgpack.unpack(packed) or false
    p.messages[key] = m
  end
  return m
end

-- Has these in memory with one question.
local function fetch(p, keys)
  local missing = {}
  for _, key in ipairs(keys) do
    if p.messages[key] == nil then missing[#missing + 1] = key end
  end
  for from = 1, #missing, 4000 do
    local to = math.min(from + 3999, #missing)
    local got = redis.call('HMGET', p.base .. ':m', unpack(missing, from, to))
    for i = from, to do
      local packed = got[i - from + 1]
      p.messages[missing[i]] = packed and cmsgpack.unpack(packed) or false
    end
  end
end

local function touch(p, key) p.changed[key] = true end

-- The level of the lane that takes a priority by an order of lanes, as it is known outside.
local function level_by(order, priority)
  if order == 'priority' then return priority end
  for _, band in ipairs(order) do
    if not band.floor or priority >= band.floor then return band.level end
  end
  return order[#order].level
end

-- The lane that takes a priority, by its level.
local function lane_of(p, priority) return level_by(p.settings.order, priority) + p.shift end

-- The lane in which a message stands.
local function lane_at(p, m)
  if m[EPOCH] then return m[EPOCH] * SPAN + m[LEVEL] end
  return level_by(p.left and p.left.first or p.settings.order, m[PRIORITY])
end

-- How a lane is called.
local function name_of(p, level)
  if LEFT.is_left(p, level) then return LEFT.name_of(p, level) end
  return p.settings.lanes[text(level - p.shift)] or text(level - p.shift)
end

-- Over unless somebody takes it in the call in which it comes: it never waits, and takes no room.
local function is_at_once(m) return is_over(m[EXPIRES], m[SINCE]) end

-- When something happens to it by itself.
local function alarm_of(m)
  local state = m[STATE]
  if state == READY then return m[EXPIRES] end
  if state == DELAYED then return earlier(m[AT], m[EXPIRES]) end
  if state == LEASED and m[PREPARED] then return NEVER end
  if state == LEASED then return m[WORK] and earlier(m[AT], m[WORK][2]) or m[AT] end
  return NEVER
end

local function save_hash(p, hash, values)
  if next(values) == nil then return end
  local set, remove = {}, {}
  for name, is in pairs(values) do
    if is then
      set[#set + 1] = name
      set[#set + 1] = is
    else
      remove[#remove + 1] = name
    end
  end
  in_pieces('HSET', p.base .. hash, set)
  in_pieces('HDEL', p.base .. hash, remove)
end

