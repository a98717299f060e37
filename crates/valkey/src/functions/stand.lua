-- Where messages stand, by their states, ids and keys; and the end of a call.

-- Counts a message of a lane where its state says, or no more, and links it there.
local function stand(p, key, m, level, by)
  local state, bytes, is_grouped = m[STATE], m[BYTES], p.keys and not LEFT.is_ungrouped(p, level)
  p.counts[level] = (p.counts[level] or 0) + by
  if state ~= DEAD then count(p, level, 'bytes', by * bytes) end
  if state == READY or state == DELAYED then
    if not is_at_once(m) then
      p.waiting = p.waiting + by
      p.bytes = p.bytes + by * bytes
    end
  end
  local member = key
  if state == READY then
    count(p, level, 'ready', by)
    count(p, level, 'ready_bytes', by * bytes)
    member = rank_of(level) .. key
    if is_grouped then
      if by > 0 then enter_group(p, m, level, key) else leave_group(p, m, level, key) end
    end
  elseif state == DELAYED then
    count(p, level, 'delayed', by)
  elseif state == LEASED then
    count(p, level, 'leased', by)
    count(p, level, 'leased_bytes', by * bytes)
    p.leased = p.leased + by
    if is_grouped then lend_group(p, m, by) end
    if m[HOLDER] then put(p, 'held', m[HOLDER] .. ZERO .. key, by > 0 and 0 or false) end
  else
    count(p, level, 'dead', by)
  end
  local alarm = alarm_of(m)
  if by > 0 then
    put(p, STANDS[state], member, 0)
    if alarm ~= NEVER then put(p, 'alarms', key, alarm) end
  else
    drop(p, STANDS[state], member)
    if alarm ~= NEVER then drop(p, 'alarms', key) end
  end
end

-- Into the lane that takes it now.
local function attach(p, key, m)
  local level = lane_of(p, m[PRIORITY])
  if p.epoch > 0 then
    m[ATTEMPTS], m[PROGRESS] = m[ATTEMPTS] or false, m[PROGRESS] or false
    m[EPOCH], m[LEVEL] = p.epoch, level - p.shift
  end
  stand(p, key, m, level, 1)
  touch(p, key)
end

-- Out of the lane in which it stands. Out of one that is being left it comes into the one that takes it now, whatever becomes of it there.
local function detach(p, key, m)
  local level = lane_at(p, m)
  stand(p, key, m, level, -1)
  if not LEFT.is_left(p, level) then return end
  local now = lane_of(p, m[PRIORITY])
  if name_of(p, now) ~= name_of(p, level) then
    count(p, now, 'published', 1)
    count(p, level, 'moved', 1)
  end
end

-- ---- ids and keys ----

local function find(p, index, hash, name)
  local key = index[name]
  if key == nil then
    key = redis.call('HGET', p.base .. hash, name)
    index[name] = key
  end
  return key
end

local function id_key(p, id) return find(p, p.ids, ':i', id) end

-- What an id means, if that is still pending.
local function pending(p, id)
  local key = id and id_key(p, id)
  local m = key and message(p, key)
  if m and m[STATE] ~= DEAD then return key, m end
  return nil
end

-- The newest pending message of a key, where only that stays.
local function value(p, key)
  local kind = p.settings.last_value
  if not kind then return nil end
  return find(p, p.values, ':k', kind == 'one' and '' or key or '') or nil
end

local function value_name(p, m)
  if p.settings.last_value == 'one' then return '' end
  return m[KEY] or ''
end

local function index(p, key, m)
  local is_dead = m[STATE] == DEAD
  if m[ID] and not (is_dead and pending(p, m[ID])) then p.ids[m[ID]] = key end
  if is_dead or not p.settings.last_value then return end
  local name = value_name(p, m)
  local other = value(p, m[KEY])
  if other and other > key then
    m[OUTDATED] = true
    return
  end
  if other and other ~= key then
    local older = message(p, other)
    if older then
      older[OUTDATED] = true
      touch(p, other)
    end
  end
  p.values[name] = key
end

local function forget_value(p, key, m)
  if p.settings.last_value and value(p, m[KEY]) == key then p.values[value_name(p, m)] = false end
end

local function insert(p, key, m, content)
  p.messages[key] = m
  p.gone[key] = nil
  if content then p.contents[key] = content end
  count(p, lane_of(p, m[PRIORITY]), 'published', 1)
  index(p, key, m)
  attach(p, key, m)
end

local function take_out(p, key, m)
  detach(p, key, m)
  if m[ID] and id_key(p, m[ID]) == key then p.ids[m[ID]] = false end
  forget_value(p, key, m)
  p.messages[key] = false
  p.changed[key] = nil
  p.contents[key] = nil
  p.gone[key], p.emptied[key] = true, true
end

-- ---- what leaves ----

-- Out of the place, to go elsewhere: from now on nothing here counts it, finds it or lets time pass for it. Kept with what it says, with why it died (or false) and a record
-- for the history (or false), until it is said what became of it.
local function leave(p, key, m, why, record, list)
  local content = p.contents[key]
  take_out(p, key, m)
  p.contents[key], p.emptied[key] = content, nil
  m[STATE], m[AT], m[LEASE], m[HOLDER], m[WORK], m[OUTDATED], m[PREPARED] = DEAD, NEVER, 0, false, false, false, false
  m[ATTEMPTS], m[PROGRESS] = m[ATTEMPTS] or false, false
  list[#list + 1] = { key, m, why, p.now, record or false }
end

-- Who was to pay leaves when all that comes in the same step has its room.
local function see_off(p)
  for _, one in ipairs(p.payers) do p.leavers[#p.leavers + 1] = one end
  p.payers = {}
end

-- ---- the end of a call ----

local answer

-- Only this is used elsewhere.
do

-- What a place that is one of several shows: of each lane what goes next there, 24 bytes: where it stands, and when it was published, where that tells its turn. Lanes that are being left are shown where there is nothing
-- else.
local function show(p)
  local all, is_aging = {}, p.settings.picker == 'aging'
  local function add(member) all[#all + 1] = LEFT.told(p, member) .. key_of(is_aging and message(p, key_in(member))[SINCE] or 0) end
  if p.keys or p.left or p.has_changed.offers then
    for _, member in ipairs(ready_heads(p)) do
      local level = level_of(member)
      if LEFT.is_left(p, level) and #all > 0 then break end
      if p.keys and not LEFT.is_ungrouped(p, level) then member = head_of_groups(p, level) end
      if member then add(member) end
    end
    return table.concat(all)
  end
  -- A lane that nothing came to or went from shows what it showed.
  local ranks, shown = {}, {}
  for at = 1, #p.heads, 24 do
    local rank = rank_of(level_in(string.sub(p.heads, at, at + 7)) + p.shift)
    shown[rank] = string.sub(p.heads, at, at + 23)
    if not p.touched[rank] then ranks[#ranks + 1] = rank end
  end
  for rank in pairs(p.touched) do ranks[#ranks + 1] = rank end
  table.sort(ranks, function(a, b) return level_in(a) > level_in(b) end)
  for _, rank in ipairs(ranks) do
    if not p.touched[rank] then
      all[#all + 1] = shown[rank]
    else
      local member = redis.call('ZRANGE', p.base .. ':o', '[' .. rank, '(' .. rank .. '\255', 'BYLEX', 'LIMIT', 0, 1)[1]
      if member then add(member) end
    end
  end
  return table.concat(all)
end

-- Whether in some lane something goes next that went later, or nothing did.
local function is_better(before, now)
  local known = {}
  for at = 1, #before, 24 do known[string.sub(before, at, at + 7)] = string.sub(before, at + 8, at + 15) end
  for at = 1, #now, 24 do
    local was = known[string.sub(now, at, at + 7)]
    if not was or string.sub(now, at + 8, at + 15) < was then return true end
  end
  return false
end

-- Counters of `:c`, by where they are among what is read of it.
local COUNTERS = { [3] = 'seq', [4] = 'lease', [5] = 'waiting', [6] = 'bytes', [7] = 'leased' }

-- Bytes of what is leased of a lane that has no such gauge yet, since it had leased messages before there was one: as other gauges tell it, which is exact where nothing of the lane is delayed.
local function leased_bytes(p, level)
  if tonumber(redis.call('HGET', p.base .. ':g', text(level) .. ':leased') or 0) == 0 then return p.gauges[level].leased_bytes end
  local leased = gauge(p, level, 'leased')
  if leased == 0 then return 0 end
  return math.floor((gauge(p, level, 'bytes') - gauge(p, level, 'ready_bytes')) * leased / (leased + gauge(p, level, 'delayed')))
end

-- Adds to all gauges with one question and one answer.
local function save_gauges(p)
  local fields, added = {}, {}
  for level, gauges in pairs(p.gauges) do
    for what, by in pairs(gauges) do
      if by ~= 0 then
        fields[#fields + 1] = text(level) .. ':' .. what
        added[#added + 1] = { level, what, by }
      end
    end
  end
  for from = 1, #fields, 2000 do
    local to, set, has_none = math.min(from + 1999, #fields), {}, {}
    local there = redis.call('HMGET', p.base .. ':g', unpack(fields, from, to))
    for i, is in ipairs(there) do
      local level, what, by = unpack(added[from + i - 1])
      local now = (is and tonumber(is) or 0) + by
      if what == 'leased_bytes' then now = is and math.max(0, now) or leased_bytes(p, level) end
      if what == 'leased' and now == 0 then has_none[level] = true end
      there[i] = now
    end
    for i, now in ipairs(there) do
      local level, what = unpack(added[from + i - 1])
      set[#set + 1] = fields[from + i - 1]
      set[#set + 1] = text(what == 'leased_bytes' and has_none[level] and 0 or now)
    end
    redis.call('HSET', p.base .. ':g', unpack(set))
  end
end

-- Writes down what has changed, tells of a better head, and answers: the time, when something happens by itself next, the head, what came of it, and how many calls
-- there have been, by which answers and pushes are put in order; and whether something is to go elsewhere.
function answer(p, what)
  see_off(p)
  local slots, is_freed
  if p.slots then
    slots, is_freed = SLOTS.tell(p, function(_, name)
      if name == '' then return p.leased end
      return p.counts_leases and math.huge or gauge(p, tonumber(name) + p.shift, 'leased')
    end)
  end
  local leavers = {}
  for _, one in ipairs(p.leavers) do
    p.leaves, p.leaving = next_number(p, p.leaves), p.leaving + 1
    local number = key_of(p.leaves)
    leavers[number] = cmsgpack.pack(one)
    put(p, 'left', number, 0)
  end
  save_producers(p)
  sync(p)
  save_hash(p, ':e', leavers)
  save_hash(p, ':j', p.arrived)
  local messages, gone, emptied = {}, {}, {}
  for key in pairs(p.changed) do
    messages[#messages + 1] = key
    messages[#messages + 1] = cmsgpack.pack(p.messages[key])
  end
  for key in pairs(p.gone) do gone[#gone + 1] = key end
  for key in pairs(p.emptied) do emptied[#emptied + 1] = key end
  in_pieces('HSET', p.base .. ':m', messages)
  in_pieces('HDEL', p.base .. ':m', gone)
  in_pieces('HDEL', p.base .. ':b', emptied)
  save_hash(p, ':b', p.contents)
  save_hash(p, ':i', p.ids)
  save_hash(p, ':k', p.values)
  if p.keys then save_groups(p) end
  save_gauges(p)
  for level, by in pairs(p.counts) do
    if by ~= 0 and redis.call('HINCRBY', p.base .. ':n', text(level), by) == 0 then redis.call('HDEL', p.base .. ':n', text(level)) end
  end
  local c = { 'now', text(p.now), 'calls', text(p.calls) }
  if next(p.gauges) then
    c[#c + 1] = 'active'
    c[#c + 1] = text(p.now)
  end
  for at, name in pairs(COUNTERS) do
    if p[name] ~= tonumber(p.was[at]) then
      c[#c + 1] = name
      c[#c + 1] = text(p[name])
    end
  end
  if p.turn then
    c[#c + 1] = 'turn'
    c[#c + 1] = cmsgpack.pack(p.turn)
  end
  if p.settings.rate then
    c[#c + 1] = 'tokens'
    c[#c + 1] = text(p.tokens)
    c[#c + 1] = 'filled'
    c[#c + 1] = text(p.filled)
  end
  if #p.leavers > 0 or p.has_heard then
    for _, one in ipairs({ 'leaves', text(p.leaves), 'leaving', text(p.leaving) }) do c[#c + 1] = one end
  end
  local head = p.head or ''
  if p.left then
    c[#c + 1] = 'goes'
    c[#c + 1] = p.goes
  end
  if p.rules then
    c[#c + 1] = 'rules'
    c[#c + 1] = cmsgpack.pack(p.rules)
  end
  if p.heads then
    head = p.heads
    if p.has_changed.order or p.has_changed.offers then head = show(p) end
    if head ~= p.heads then
      c[#c + 1] = 'heads'
      c[#c + 1] = head
    end
  -- What nothing was put into is as it was found.
  elseif p.has_changed.order or p.has_changed.offers then
    head = head_of(p) or ''
  end
  if slots then
    c[#c + 1] = 'slots'
    c[#c + 1] = cmsgpack.pack(p.slots)
  end
  redis.call('HSET', p.base .. ':c', unpack(c))
  local gets_better
  local told = head
  if not p.heads and head ~= '' then told = LEFT.told(p, head) end
  if p.heads then gets_better = is_better(p.heads, head) else gets_better = head ~= '' and (not p.head or head < p.head) end
  if is_freed then
    redis.call('SPUBLISH', p.base .. ':heads', told .. key_of(p.calls) .. 'f')
  elseif gets_better or (head ~= '' and (p.shows_again or (p.was_full and not is_at_most(p)))) then
    redis.call('SPUBLISH', p.base .. ':heads', told .. key_of(p.calls))
  end
  local alarm, sign = p.alarm, p.sign
  if p.has_changed.alarms or not alarm then alarm = first_of(p, 'alarms') end
  if p.has_changed.alive or not sign then sign = first_of(p, 'alive') end
  local wakes_at = (p.over or p.left or p.rules or p.rings_on) and p.now or earlier(alarm, sign)
  return { 'ok', p.now, wakes_at, told, what, p.calls, p.leaving > 0 and 1 or 0, slots or {} }
end

end
