-- Leasing: which message goes next, and to whom.

local function fill(p)
  local rate = p.settings.rate
  if not rate then return end
  local most = rate.messages * rate.per_ms
  p.tokens = math.min(most, p.tokens + (p.now - p.filled) * rate.messages)
  p.filled = p.now
end

-- Whether nothing may be leased now, whoever asks.
local function is_held_back(p)
  local s = p.settings
  if s.paused or is_at_most(p) then return true end
  -- How many are out of a key is not known yet.
  if p.counts_leases and p.left.ungrouped and p.keys and p.keys.limit > 0 then return true end
  return s.rate and p.tokens < s.rate.per_ms
end

-- Members of `:o` from here to there, one after the other, read by pages. What is taken meanwhile is not looked for again.
local function walk(p, from, to, page)
  local members, at = {}, 0
  return function(is_taken)
    if is_taken then at = at + 1 end
    if at >= #members then
      members = redis.call('ZRANGE', p.base .. ':o', from, to, 'BYLEX', 'LIMIT', 0, page)
      at = 0
      if #members > 0 then
        from = '(' .. members[#members]
        local keys = {}
        for i, member in ipairs(members) do keys[i] = key_in(member) end
        fetch(p, keys)
      end
    end
    return members[at + 1]
  end
end

local function is_capped(p, level)
  local name = text(level - p.shift)
  local cap = p.settings.caps[name]
  return cap and cap > 0 and (p.counts_leases or gauge(p, level, 'leased') >= SLOTS.most(p, name, cap))
end

-- Whether the head of a lane may not go. One in a lane that is being left comes under the limits of the lane that takes it now, and of its key.
local function is_kept_back(p, lane)
  if not LEFT.is_left(p, lane.level) then return is_capped(p, lane.level) end
  local m = message(p, key_in(lane.head))
  if lane.is_ungrouped and p.keys and is_held_group(p, m[KEY] or '', group(p, m[KEY] or '')) then return true end
  return is_capped(p, lane_of(p, m[PRIORITY]))
end

-- The most urgent of those that may go, of lanes that have a head.
local PICK = {}

function PICK.strict(_, lanes) return lanes[1] end

function PICK.aging(p, lanes)
  local best, least
  for _, lane in ipairs(lanes) do
    local urgency = message(p, key_in(lane.head))[SINCE] - (lane.level - p.shift) * p.settings.aging_ms
    if not least or urgency < least then best, least = lane, urgency end
  end
  return best
end

function PICK.weighted(p, lanes)
  local turn = p.turn
  if not turn then return lanes[1] end
  for _, lane in ipairs(lanes) do
    if lane.level == turn[1] and turn[2] > 0 then return lane end
  end
  for _, lane in ipairs(lanes) do
    if lane.level < turn[1] then return lane end
  end
  return lanes[1]
end

local function charge(p, level)
  if p.settings.rate then p.tokens = math.max(0, p.tokens - p.settings.rate.per_ms) end
  if p.settings.picker ~= 'weighted' or LEFT.is_left(p, level) then return end
  local left = weight_of(p, level)
  if p.turn and p.turn[1] == level and p.turn[2] > 0 then left = p.turn[2] end
  p.turn = { level, left - 1 }
end

-- What goes next, for somebody who takes from lanes at this level or above, but for these, and nothing after this member: a function that answers the
-- member and its message, and is told each time whether the last one was taken. Lanes that are being left come after all others, and are for whoever takes from all.
local function source(p, want)
  local s = p.settings
  local to = want.last ~= '' and '[' .. LEFT.heard(p, want.last) or '+'
  local floor = want.floor and want.floor + p.shift or next(want.except) and LEFT.floor(p)
  if floor and p.left or want.floor then
    local least = end_of(floor)
    if to == '+' or least < string.sub(to, 2) then to = '[' .. least end
  end
  if not p.keys and not want.only and s.picker == 'strict' and not next(s.caps) and not next(want.except) then
    local head = walk(p, '-', to, want.max)
    return function(is_taken) return head(is_taken) end
  end
  local lanes = {}
  for _, level in ipairs(want.only and { LEFT.inside(p, want.only) } or ready_levels(p)) do
    local rank, after = rank_of(level), end_of(level)
    local stop = '(' .. after
    if to ~= '+' and string.sub(to, 2) < after then stop = to end
    if not want.except[text(level - p.shift)] and (to == '+' or rank <= string.sub(to, 2)) then
      lanes[#lanes + 1] = { level = level, is_ungrouped = not p.keys or LEFT.is_ungrouped(p, level), walk = walk(p, '[' .. rank, stop, math.min(want.max, 16)) }
    end
  end
  local taken
  return function(is_taken)
    if taken and is_taken and taken.is_ungrouped then taken.head = taken.walk(true) end
    local eligible = {}
    for _, lane in ipairs(lanes) do
      if #eligible > 0 and LEFT.is_left(p, lane.level) then break end
      if not lane.is_ungrouped then
        -- What one gives may change what all others may.
        lane.head = next_of_groups(p, lane.level) or false
        if to ~= '+' and lane.head and lane.head > string.sub(to, 2) then lane.head = false end
      elseif lane.head == nil then
        lane.head = lane.walk(false) or false
      end
      if lane.head and not is_kept_back(p, lane) then eligible[#eligible + 1] = lane end
    end
    if #eligible == 0 then
      taken = nil
      return nil
    end
    taken = PICK[s.picker](p, eligible)
    return taken.head
  end
end

-- Upper bounds of waiting times, ms.
local WAITS = { 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 300000, 1800000, 7200000, 28800000, 86400000 }

local function count_delivered(p, m, is_inversion)
  local level = lane_of(p, m[PRIORITY])
  count(p, level, 'delivered', 1)
  if is_inversion then count(p, level, 'inversions', 1) end
  if m[COUNT] > 1 then return count(p, level, 'redelivered', 1) end
  local waited = math.max(0, p.now - m[SINCE])
  for i, bound in ipairs(WAITS) do
    if waited <= bound then
      count(p, level, 'wait_' .. i, 1)
      break
    end
  end
  count(p, level, 'waits', 1)
  count(p, level, 'waited_ms', waited)
end

-- A lease, or for good.
local function give(p, key, m, want)
  detach(p, key, m)
  m[COUNT] = m[COUNT] + 1
  m[STATE], m[LEASE], m[HOLDER] = LEASED, next_lease(p), want.holder
  m[AT] = want.ms > 0 and p.now + want.ms or NEVER
  if p.settings.notes_work then
    local longest = p.settings.run_timeout_ms
    m[WORK] = { p.now, longest > 0 and p.now + longest or NEVER, false }
  end
  attach(p, key, m)
end

-- `[sequence, message, content]` of each.
local function as_leased(p, keys)
  local what = {}
  for from = 1, #keys, 4000 do
    local to = math.min(from + 3999, #keys)
    local contents = redis.call('HMGET', p.base .. ':b', unpack(keys, from, to))
    for i = from, to do what[i] = { seq_of(keys[i]), message(p, keys[i]), p.contents[keys[i]] or contents[i - from + 1] } end
  end
  return what
end

-- What is over when its turn comes is not given.
local function lease_all(p, want)
  sync(p)
  fill(p)
  local got, left, bytes, last, passed = {}, want.max, want.bytes, nil, 0
  local go_on = source(p, want)
  local member = go_on(false)
  while member and left > 0 and not is_held_back(p) do
    local key = key_in(member)
    local m = message(p, key)
    local level = level_of(member)
    if is_over(m[EXPIRES], p.now) and not is_at_once(m) then
      local why = expire(p, key, m)
      if why then finish(p, key, m, why) end
      passed = passed + 1
      if passed == DUE_MAX then break end
    else
      if last and (m[BYTES] > bytes or (want.one and last ~= level)) then break end
      charge_group(p, m, level)
      give(p, key, m, want)
      count_delivered(p, m, want.is_inversion and want.is_inversion(level))
      charge(p, level)
      left, bytes, last = left - 1, math.max(0, bytes - m[BYTES]), level
      got[#got + 1] = key
    end
    member = left > 0 and go_on(true)
  end
  return got
end

-- Leases. Arguments: most messages, most bytes, how long in ms (0: no end), the holder with whom the leases end (or empty), how long that is believed to be there, ms, the least level (or empty), the last
-- member that may go (or empty), whether of one lane only (1 or 0), slots that were ever granted by names of limits (JSON, or empty), the one level to take from (or empty), then levels of lanes to leave out. Answers `[sequence, message, content]` of each.
local function lease(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local got = {}
  local done = before(p)
  if done then
    for _, one in ipairs(done) do
      local m = message(p, one[1])
      if m and m[STATE] == LEASED and m[LEASE] == one[2] then got[#got + 1] = one[1] end
    end
  else
    local want = {
      max = tonumber(args[4]), bytes = tonumber(args[5]), ms = tonumber(args[6]), holder = args[7] ~= '' and args[7] or false,
      floor = tonumber(args[9]), last = args[10], one = args[11] == '1', only = tonumber(args[13]), except = {},
    }
    for at = 14, #args do want.except[args[at]] = true end
    SLOTS.take(p, args[12])
    if p.keys or next(want.except) or next(p.settings.caps) or p.settings.picker ~= 'strict' then
      -- Something more urgent may be ready and stay.
      want.is_inversion = function(level)
        sync(p)
        local head = redis.call('ZRANGE', p.base .. ':o', 0, 0)[1]
        return head and level_of(head) > level
      end
    end
    got = lease_all(p, want)
    if want.holder and #got > 0 then put(p, 'alive', want.holder, p.now + tonumber(args[8])) end
    local kept = {}
    for i, key in ipairs(got) do kept[i] = { key, message(p, key)[LEASE] } end
    remember(p, kept)
  end
  return answer(p, as_leased(p, got))
end

-- The message of a lease that still holds.
local function leased(p, seq, number)
  local key = key_of(seq)
  local m = message(p, key)
  if m and m[STATE] == LEASED and m[LEASE] == number then return key, m end
  return nil
end

-- Lengthens leases from now, each for itself. Arguments: how long in ms (0: no end), what the work has printed so far as `=` and the text (or empty: as it was), then the sequence and
-- the number of each. Answers for each 1, 0 where it does not hold any more, or 2 where the message is wanted back.
local function extend(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local ms, what = tonumber(args[4]), {}
  for at = 6, #args, 2 do
    local key, m = leased(p, tonumber(args[at]), tonumber(args[at + 1]))
    if not key then
      what[#what + 1] = 0
    elseif m[HOLDER] and args[5] == '' then
      what[#what + 1] = 1
    elseif m[WORK] and m[WORK][3] and not m[HOLDER] then
      what[#what + 1] = 2
    else
      detach(p, key, m)
      if not m[HOLDER] then m[AT] = ms > 0 and p.now + ms or NEVER end
      if args[5] ~= '' then RECORDS.progress(m, string.sub(args[5], 2)) end
      attach(p, key, m)
      what[#what + 1] = 1
    end
  end
  return answer(p, what)
end

-- A holder is there. Arguments: the holder, how long that is believed from now, ms (0: it is gone), then a lease that was given here, and sequences of messages that went out to it with that or before and of
-- which it knows nothing: they go back. Answers how many went back, the last lease that was given here, and the sequences of what is out to it, as bytes.
local function alive(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local holder, ms, unknown = args[4], tonumber(args[5]), {}
  sync(p)
  if ms == 0 then return answer(p, { bury(p, holder), p.lease, '' }) end
  -- Of one that holds nothing nothing is to be known.
  if redis.call('ZSCORE', p.base .. ':q', holder) then put(p, 'alive', holder, p.now + ms) end
  for at = 7, #args do unknown[#unknown + 1] = key_of(tonumber(args[at])) end
  local lost = give_back(p, holder, unknown, tonumber(args[6]))
  sync(p)
  return answer(p, { lost, p.lease, table.concat(held_by(p, holder)) })
end

register_always('ot_lease', lease)
register_always('ot_extend', extend)
register_always('ot_alive', alive)
