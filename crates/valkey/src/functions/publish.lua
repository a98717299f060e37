-- Admitting messages: whether one is taken, what it replaces, and who pays for it.

local function room_of(m)
  if is_at_once(m) then return 0, 0 end
  return 1, m[BYTES]
end

-- Whether one of this priority finds a lane; `opened` are lanes that others of the same call will open.
local function has_lane(p, level, opened)
  if p.settings.order ~= 'priority' or opened[level] then return true end
  local n = p.base .. ':n'
  local is_there = function(l) return redis.call('HEXISTS', n, text(l)) == 1 end
  if (p.counts[level] or 0) ~= 0 or is_there(level) then return true end
  local lanes = redis.call('HLEN', n)
  for _, one in ipairs(p.left and redis.call('HKEYS', n) or {}) do
    if LEFT.is_left(p, tonumber(one)) then lanes = lanes - 1 end
  end
  for l, by in pairs(p.counts) do
    if by > 0 and not is_there(l) then lanes = lanes + 1 end
    if by < 0 and not LEFT.is_left(p, l) and tonumber(redis.call('HGET', n, text(l))) + by == 0 then lanes = lanes - 1 end
  end
  for l in pairs(opened) do
    if not is_there(l) then lanes = lanes + 1 end
  end
  if p.settings.scheme ~= 'signed' then return lanes < LANES_MAX end
  local is_kept, free = false, 0
  for _, kept in ipairs(KEPT) do
    local l = kept + p.shift
    if l == level then
      is_kept = true
    elseif not opened[l] and tonumber(redis.call('HGET', n, text(l)) or 0) + (p.counts[l] or 0) <= 0 then
      free = free + 1
    end
  end
  return lanes + (is_kept and 0 or free) < LANES_MAX
end

-- The waiting message whose place a newer one of this key takes.
local function replaced_by(p, key)
  local older = value(p, key)
  local m = older and message(p, older)
  if m and (m[STATE] == READY or m[STATE] == DELAYED) then return older, m end
  return nil
end

-- Whether the place comes within its limits when it drops what is ready and no more urgent than this.
local function others_pay(p, level, messages, bytes, replaced)
  if p.settings.overflow ~= 'evict' then return false end
  -- It has been taken off already, and its lane counts it still.
  if replaced and replaced[STATE] == READY and lane_at(p, replaced) <= level then
    local one, its = room_of(replaced)
    messages, bytes = messages + one, bytes + its
  end
  local levels = {}
  for _, l in ipairs(redis.call('HKEYS', p.base .. ':n')) do levels[tonumber(l)] = true end
  for l in pairs(p.counts) do levels[l] = true end
  for l in pairs(levels) do
    if l <= level then
      messages = messages - math.min(messages, gauge(p, l, 'ready'))
      bytes = bytes - math.min(bytes, gauge(p, l, 'ready_bytes'))
    end
  end
  return not is_full_of(p, messages, bytes)
end

-- Why one more does not fit, if it does not; what is admitted before it in the same call counts as waiting.
local function no_room(p, level, priority, size, tally, replaced)
  local one, its = 0, 0
  if replaced then one, its = room_of(replaced) end
  local waiting = p.waiting + tally.messages - one
  local bytes = p.bytes + tally.bytes + size - its
  local reject = p.settings.reject_below
  if reject and waiting >= reject.depth and priority < reject.priority then return 'below_priority' end
  if not is_full_of(p, waiting + 1, bytes) or others_pay(p, level, waiting + 1, bytes, replaced) then return nil end
  return 'queue_full'
end

-- When one expires that came then: the least of its own time to live, the one that stands in for the queue's or the queue's, and the queue's longest.
local function expiry(p, m, since)
  local s = p.settings
  local base = m.base_ms or s.ttl_ms
  local least = base > 0 and base or nil
  local function set(ms) if not least or ms < least then least = ms end end
  if s.max_ttl_ms > 0 then set(s.max_ttl_ms) end
  if m.ttl_ms then set(m.ttl_ms) end
  if s.evict_at_once or (s.expire_at_once and not m.base_ms) then set(0) end
  return least and since + least or NEVER
end

-- Whether something is to be done with what is evicted.
local function leaves_evicted(s) return s.history or (s.dead_letter_evicted and s.dead_letter ~= 'drop') end

-- Why one is not taken; false: it is there already.
local function check(p, m, tally)
  local key = pending(p, m.id)
  if key and not m.from then return false, key end
  -- What a record is of has ended, so its id means the record now.
  if key and not m.is_record then return 'id_pending' end
  local s = p.settings
  if s.last_value == 'key' and not m.key then return 'key_missing' end
  if (s.max_message_bytes > 0 and m.size > s.max_message_bytes) or (s.max_bytes > 0 and m.size > s.max_bytes) then return 'message_too_large' end
  local level = lane_of(p, m.priority)
  if not has_lane(p, level, tally.opened) then return 'too_many_lanes' end
  -- Else what one eviction begins might go round through all places.
  if m.is_evicted and leaves_evicted(s) and is_full_of(p, p.waiting + 1, p.bytes + m.size) then return 'queue_full' end
  if s.evict_at_once and s.overflow ~= 'evict' and not m.from then return 'queue_full' end
  m.is_at_once = m.ttl_ms == 0 or s.evict_at_once or (s.expire_at_once and not m.base_ms)
  if m.is_at_once then return nil end
  local _, replaced = replaced_by(p, m.key)
  return no_room(p, level, m.priority, m.size, tally, replaced)
end

-- So far may the clock of whoever publishes be off, us.
local CLOCKS_APART = 1000000

-- The sequence of what comes now. With one order over places there is a clock in it: that of whoever publishes, by which its messages have one order wherever they go, as long as it is
-- near the clock here; else the clock here.
local function next_seq(p, at)
  p.seq = p.seq + 1
  if p.settings.by_clock then
    local came = p.us
    if at then came = math.max(p.us - CLOCKS_APART, math.min(at, p.us + CLOCKS_APART)) end
    p.seq = math.max(p.seq, came)
  end
  return key_of(p.seq)
end

local function compose(p, m, state)
  local due = NEVER
  if state == DELAYED then due = p.now + m.delay_ms end
  local since = m.since or p.now
  local new = {
    m.priority, m.given, since, expiry(p, m, since), m.size, 0, state, due, 0,
    m.id or false, m.key or false, false, false, m.deaths or false, m.record or false, false, false, m.attempts or false,
  }
  if m.key_weight then new[PROGRESS], new[EPOCH], new[LEVEL], new[KEY_WEIGHT] = false, false, false, m.key_weight end
  return new
end

-- While the place is over its limits its least urgent message goes: the oldest of the last lane; the newcomer, when all that is ready is more urgent.
local function evict(p, newcomer, m)
  local level = lane_of(p, m[PRIORITY])
  -- Where much is to go, since a limit was lowered, the calls that follow go on.
  local left = p.over and 1 or DUE_MAX
  while is_full_of(p, p.waiting, p.bytes) do
    if left == 0 then return be_over(p) end
    left = left - 1
    sync(p)
    local victim = newcomer
    local last = redis.call('ZRANGE', p.base .. ':o', -1, -1)[1]
    if last and level_of(last) <= level then
      local rank = rank_in(last)
      for _, member in ipairs(redis.call('ZRANGE', p.base .. ':o', '[' .. rank, '+', 'BYLEX', 'LIMIT', 0, 2)) do
        if key_in(member) ~= newcomer then
          victim = key_in(member)
          break
        end
      end
    end
    die(p, victim, message(p, victim), 'maxlen', nil, p.payers)
    if victim == newcomer then return end
  end
end

local function arrive(p, key, m, content)
  local older, replaced = replaced_by(p, m[KEY])
  insert(p, key, m, content)
  if older then settle(p, older, replaced, 'replaced') end
  if not is_at_once(m) then evict(p, key, m) end
end

local function publish(p, m)
  local key = next_seq(p, m.at)
  arrive(p, key, compose(p, m, m.delay_ms > 0 and DELAYED or READY), m.content)
  return key
end

local before_in_lane, weight_of, position

-- Only these are used elsewhere.
do

-- Ready messages of a lane before this one.
function before_in_lane(p, level, key)
  local rank = rank_of(level)
  return redis.call('ZLEXCOUNT', p.base .. ':o', '[' .. rank, '(' .. rank .. key)
end

function weight_of(p, level) return p.settings.weights[text(level - p.shift)] or 1 end

-- How many messages other lanes give, each in its turn, before this one has given so many.
local function ahead_in_turns(p, level, in_lane)
  local served, left = nil, 0
  if p.turn then served, left = p.turn[1], p.turn[2] end
  local function in_ring(l)
    if not served then return p.shift - l end
    return l < served and served - l or served - l + 4294967296
  end
  local function left_to(l) return l == served and left or 0 end
  if in_lane < left_to(level) then return 0 end
  local rounds = math.floor((in_lane - left_to(level)) / weight_of(p, level))
  local ahead = 0
  for _, other in ipairs(ready_levels(p)) do
    if other ~= level and not LEFT.is_left(p, other) then
      local turns = rounds + (in_ring(other) < in_ring(level) and 1 or 0)
      ahead = ahead + math.min(gauge(p, other, 'ready'), left_to(other) + turns * weight_of(p, other))
    end
  end
  return ahead
end

-- Under ageing a position is told up to this depth.
local POSITION_MAX = 1000

-- How many messages of other lanes are more urgent by now; nil where there are too many.
local function older(p, level, m, in_lane)
  local step, left, ahead = p.settings.aging_ms, POSITION_MAX - in_lane, 0
  if left < 0 then return nil end
  local mine = m[SINCE] - (level - p.shift) * step
  for _, other in ipairs(ready_levels(p)) do
    if other ~= level and not LEFT.is_left(p, other) then
      local rank = rank_of(other)
      local members = redis.call('ZRANGE', p.base .. ':o', '[' .. rank, '(' .. end_of(other), 'BYLEX', 'LIMIT', 0, left - ahead + 1)
      for _, member in ipairs(members) do
        local one = message(p, key_in(member))
        local urgency = one[SINCE] - (other - p.shift) * step
        if urgency > mine or (urgency == mine and other < level) then break end
        ahead = ahead + 1
        if ahead > left then return nil end
      end
    end
  end
  return ahead
end

-- How many are ready in each lane, as it was when the call began.
local function ready_before(p)
  if not p.ready_before then
    p.ready_before = {}
    local levels = redis.call('HKEYS', p.base .. ':n')
    local names = {}
    for at, level in ipairs(levels) do names[at] = level .. ':ready' end
    local ready = #names > 0 and redis.call('HMGET', p.base .. ':g', unpack(names)) or {}
    for at, level in ipairs(levels) do p.ready_before[tonumber(level)] = tonumber(ready[at] or 0) end
  end
  return p.ready_before
end

-- How many go before the newest of all, which is the last of its lane, where the most urgent lane goes first: counted, and nothing looked up.
local function newest_position(p, level)
  local ahead, in_lane = -1, -1
  for l, ready in pairs(ready_before(p)) do
    if l >= level then ahead = ahead + ready end
    if l == level then in_lane = in_lane + ready end
  end
  for l, gauges in pairs(p.gauges) do
    if l >= level then ahead = ahead + (gauges.ready or 0) end
    if l == level then in_lane = in_lane + (gauges.ready or 0) end
  end
  return ahead, in_lane
end

-- How many go before a ready message, in all and in its lane; -1 where that is not known.
function position(p, key, m)
  if not m or m[STATE] ~= READY then return -1, -1 end
  local level = lane_at(p, m)
  -- Whatever the picker is, lanes that are being left come one after the other.
  local is_in_order = p.settings.picker == 'strict' or LEFT.is_left(p, level)
  if is_in_order and key == key_of(p.seq) then return newest_position(p, level) end
  sync(p)
  local in_lane = before_in_lane(p, level, key)
  if is_in_order then return redis.call('ZLEXCOUNT', p.base .. ':o', '-', '(' .. rank_of(level) .. key), in_lane end
  local elsewhere
  if p.settings.picker == 'weighted' then elsewhere = ahead_in_turns(p, level, in_lane) else elsewhere = older(p, level, m, in_lane) end
  return elsewhere and elsewhere + in_lane or -1, in_lane
end

end

-- ---- the functions ----

local function given_text(argument) return argument ~= '' and argument or nil end

-- A message takes ten arguments: its priority inside, what was given, id, key, its own time to live, the one that stands in for the queue's, its delay,
-- its size, its content, and what not all have, as JSON: how it left another place, how its producer numbered it, when its publisher says it comes. Empty: none.
local PER_MESSAGE = 10

local function read_message(args, at)
  local m = {
    priority = tonumber(args[at]), given = args[at + 1], id = given_text(args[at + 2]), key = args[at + 3] ~= '' and string.sub(args[at + 3], 2) or nil,
    ttl_ms = tonumber(args[at + 4]), base_ms = tonumber(args[at + 5]), delay_ms = tonumber(args[at + 6]),
    size = tonumber(args[at + 7]), content = args[at + 8],
  }
  if args[at + 9] ~= '' then
    for name, is in pairs(cjson.decode(args[at + 9])) do m[name] = is end
  end
  return m
end

local function new_tally() return { messages = 0, bytes = 0, opened = {} } end

local function told(p, key, tells, is_duplicate)
  local ahead, in_lane = -1, -1
  if tells then ahead, in_lane = position(p, key, message(p, key)) end
  return { seq_of(key), is_duplicate and 1 or 0, ahead, in_lane }
end

-- The message of a publish that a full place refuses is a dead letter, where it says so.
local function refuse(p, m, why)
  if why == 'queue_full' and p.settings.overflow == 'reject_dead_letter' and p.settings.dead_letter ~= 'drop' then
    local key = next_seq(p, m.at)
    local dead = compose(p, m, DEAD)
    insert(p, key, dead, m.content)
    die(p, key, dead, 'maxlen')
  end
  return { why }
end

-- What nobody took at once, and was to be taken at once, is over.
local function end_at_once(p, keys)
  see_off(p)
  for _, key in ipairs(keys) do
    local m = message(p, key)
    local why = m and (m[STATE] == READY or m[STATE] == DELAYED) and expire(p, key, m)
    if why then finish(p, key, m, why) end
  end
end

-- For how long it is known what came of a message of another place, ms.
local ARRIVALS_MS = 86400000
-- What is known for longer goes, so many with each that comes.
local ARRIVALS_GO = 8

-- A message that left another place, where it is known by `from`. What came of it once comes of it always.
local function receive(p, m, tells)
  local came = p.arrived[m.from] or redis.call('HGET', p.base .. ':j', m.from)
  if came then
    came = cmsgpack.unpack(came)
    if came[1] then return { came[1] } end
    return told(p, came[2], tells, true)
  end
  m.since = math.min(m.since, p.now)
  local why, what = check(p, m, new_tally()), nil
  if why then
    came, what = { why }, { why }
  else
    local older, there = pending(p, m.id)
    if older and there[STATE] == LEASED then
      -- Somebody holds what has its id.
      m.id = nil
    elseif older then
      settle(p, older, there, 'replaced')
    end
    local key = publish(p, m)
    came, what = { false, key }, told(p, key, tells, false)
    if m.is_at_once then end_at_once(p, { key }) end
  end
  p.arrived[m.from] = cmsgpack.pack(came)
  put(p, 'arrivals', m.from, p.now)
  for _, from in ipairs(redis.call('ZRANGE', p.base .. ':jt', '-inf', text(p.now - ARRIVALS_MS), 'BYSCORE', 'LIMIT', 0, ARRIVALS_GO)) do
    p.arrived[from] = false
    put(p, 'arrivals', from, false)
  end
  return what
end

-- Admits one message. One that is over at once if nobody takes it is offered first, if it can be.
local function take(p, m, tells, offer)
  if m.from then return receive(p, m, tells) end
  if was_taken(p, m.origin) then return {} end
  local why, there = check(p, m, new_tally())
  if why then return refuse(p, m, why) end
  note_taken(p, m.origin)
  if there then return told(p, there, tells, true) end
  local key = publish(p, m)
  local what = told(p, key, tells, false)
  if offer then offer() end
  if m.is_at_once then end_at_once(p, { key }) end
  return what
end

-- Admits messages, each for itself. Arguments: whether to tell positions (1 or 0), then the messages. Answers for each
-- `[sequence, is a duplicate, messages ahead, messages ahead in its lane]` or `[refusal]`, or nothing if it was taken before by its number.
local function admit(keys, args)
  return once(keys, args, function(p)
    local what, tells = {}, args[4] == '1'
    for at = 5, #args, PER_MESSAGE do
      what[#what + 1] = take(p, read_message(args, at), tells)
      see_off(p)
    end
    return what
  end)
end

redis.register_function('ot_admit', admit)
