-- Counts a place again from its messages alone. Answers what is not as it should be.
local base, SPAN, wrong = KEYS[1], 4294967296, {}
local c, settings = {}, nil
local fields = redis.call('HGETALL', base .. ':c')
for at = 1, #fields, 2 do c[fields[at]] = fields[at + 1] end
settings = cmsgpack.unpack(c.settings)
local epoch, left = tonumber(c.epoch or 0), c.left and cmsgpack.unpack(c.left)
local floor = epoch * SPAN - 2147483648

local function level_by(order, priority)
  if order == 'priority' then return priority end
  for _, band in ipairs(order) do
    if not band.floor or priority >= band.floor then return band.level end
  end
  return order[#order].level
end

local function rank_of(level)
  local of = math.floor((level + 2147483648) / SPAN)
  local low = 2147483647 - (level - of * SPAN)
  return of == 0 and struct.pack('>I8', low) or struct.pack('>I8I4', 16777215 - of, low)
end

local numbers = { n = {}, g = {}, c = { waiting = 0, bytes = 0, leased = 0 } }
local function add(of, name, by) numbers[of][name] = (numbers[of][name] or 0) + by end
local sets = { o = {}, d = {}, l = {}, x = {}, h = {}, t = {}, w = {} }
local out, offers = {}, {}

local all = redis.call('HGETALL', base .. ':m')
for at = 1, #all, 2 do
  local key, m = all[at], cmsgpack.unpack(all[at + 1])
  local priority, state, bytes = m[1], m[7], m[5]
  local level = m[20] and m[20] * SPAN + m[21] or level_by(left and left.first or settings.order, priority)
  local name, alarm = string.format('%.0f', level), -1
  local is_grouped = settings.keys and not (left and left.ungrouped and level < left.ungrouped)
  if level < floor and not left then wrong[#wrong + 1] = 'a message is in a lane that is gone' end
  if level >= floor and level ~= level_by(settings.order, priority) + epoch * SPAN then wrong[#wrong + 1] = 'a message is in the lane of another priority' end
  add('n', name, 1)
  if state ~= 3 then add('g', name .. ':bytes', bytes) end
  if state == 0 or state == 1 then
    add('c', 'waiting', 1)
    add('c', 'bytes', bytes)
    alarm = m[4]
  end
  if state == 0 then
    add('g', name .. ':ready', 1)
    add('g', name .. ':ready_bytes', bytes)
    sets.o[rank_of(level) .. key] = true
    if is_grouped then
      local group = m[11] or ''
      sets.w[rank_of(level) .. group .. '\0' .. key] = true
      offers[group] = offers[group] or {}
      local first = offers[group][level]
      offers[group][level] = first and first < key and first or key
    end
  elseif state == 1 then
    add('g', name .. ':delayed', 1)
    sets.d[key] = true
    if alarm == -1 then alarm = m[8] else alarm = math.min(alarm, m[8]) end
  elseif state == 2 then
    add('g', name .. ':leased', 1)
    add('g', name .. ':leased_bytes', bytes)
    add('c', 'leased', 1)
    sets.l[key] = true
    alarm = m[17] and -1 or m[8]
    if m[12] then sets.h[m[12] .. '\0' .. key] = true end
    if is_grouped then out[m[11] or ''] = (out[m[11] or ''] or 0) + 1 end
  else
    add('g', name .. ':dead', 1)
    sets.x[key] = true
  end
  if alarm ~= -1 then sets.t[key] = true end
end

local function compare(what, expected, there)
  for name, is in pairs(expected) do
    if is ~= (there[name] or 0) then wrong[#wrong + 1] = what .. ' ' .. name .. ' is ' .. tostring(there[name]) .. ', not ' .. tostring(is) end
  end
  for name, is in pairs(there) do
    if expected[name] == nil and is ~= 0 then wrong[#wrong + 1] = what .. ' ' .. name .. ' is ' .. tostring(is) .. ', not there' end
  end
end

local function hash(name, pattern)
  local there, got = {}, redis.call('HGETALL', base .. name)
  for at = 1, #got, 2 do
    if not pattern or string.find(got[at], pattern) then there[got[at]] = tonumber(got[at + 1]) end
  end
  return there
end

compare(':n', numbers.n, hash(':n'))
local gauges = {}
for name, is in pairs(hash(':g')) do
  local what = string.match(name, ':(.+)$')
  for _, gauge in ipairs({ 'ready', 'ready_bytes', 'delayed', 'leased', 'leased_bytes', 'dead', 'bytes' }) do
    if what == gauge then gauges[name] = is end
  end
end
compare(':g', numbers.g, gauges)
for name, is in pairs(numbers.c) do
  if tonumber(c[name]) ~= is then wrong[#wrong + 1] = name .. ' is ' .. c[name] .. ', not ' .. is end
end
if not settings.keys then sets.w = {} end
for name, expected in pairs(sets) do
  local there = {}
  for _, member in ipairs(redis.call('ZRANGE', base .. ':' .. name, 0, -1)) do there[member] = true end
  for member in pairs(expected) do
    if not there[member] then wrong[#wrong + 1] = 'of :' .. name .. ' one is missing' end
  end
  for member in pairs(there) do
    if not expected[member] then wrong[#wrong + 1] = 'of :' .. name .. ' one is too many' end
  end
end

-- Of groups: how many are out, and that what may go is offered and nothing else is.
if settings.keys then
  local expected = {}
  for group, levels in pairs(offers) do
    local is_held = group ~= '' and settings.keys.limit > 0 and (out[group] or 0) >= settings.keys.limit
    if not is_held then
      for level, first in pairs(levels) do expected[rank_of(level) .. first] = true end
    end
  end
  for _, member in ipairs(redis.call('ZRANGE', base .. ':f', 0, -1)) do
    local short = string.sub(member, 1, -25) .. string.sub(member, -8)
    if not expected[short] and not c.rules then wrong[#wrong + 1] = 'one is offered that may not go' end
    expected[short] = nil
  end
  if next(expected) and not c.rules then wrong[#wrong + 1] = 'one that may go is not offered' end
  local groups = redis.call('HGETALL', base .. ':y')
  for at = 1, #groups, 2 do
    local group = cmsgpack.unpack(groups[at + 1])
    if group[1] ~= (out[groups[at]] or 0) then wrong[#wrong + 1] = 'of a key ' .. group[1] .. ' are out, not ' .. (out[groups[at]] or 0) end
  end
end
return wrong
