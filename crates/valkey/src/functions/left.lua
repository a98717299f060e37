-- Lanes that are being left: what is in them goes to the lanes that take it now, so many messages with each call.
--
-- First what is leased, so that limits count it; then what is ready, in the order in which it would go; then what is delayed, and dead letters. Whatever else happens to a message that is in such
-- a lane brings it out of it, too.

do

-- Most messages of one call; of that which changes the lanes.
function LEFT.room(is_first) return is_first and 1000 or DUE_MAX end

local NEXT = { leased = 'order', order = 'delayed', delayed = 'dead', dead = 'end' }

-- The first messages that are ready below a level of which no lane is that level's or above it.
local function first_below(p, level, most)
  -- Ranks from before any change that are this low are not in line with those that came later.
  local first = redis.call('ZRANGE', p.base .. ':o', '-', '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if first and level_of(first) < level then return redis.call('ZRANGE', p.base .. ':o', '-', '(' .. end_of(level_of(first)), 'BYLEX', 'LIMIT', 0, most) end
  return redis.call('ZRANGE', p.base .. ':o', '(' .. end_of(level), '+', 'BYLEX', 'LIMIT', 0, most)
end

-- What goes next of what is in no group yet.
function LEFT.first_ungrouped(p)
  return p.left.ungrouped and first_below(p, p.left.ungrouped, 1)[1]
end

-- The next messages that stand so, and the last sequence that is gone through with them.
local function next_of(p, set, after, most)
  local keys = {}
  if set == 'order' then
    for at, member in ipairs(first_below(p, LEFT.floor(p), most)) do keys[at] = key_in(member) end
    return keys, ''
  end
  keys = redis.call('ZRANGE', p.base .. NAMES[set], after == '' and '-' or '(' .. after, '+', 'BYLEX', 'LIMIT', 0, most)
  return keys, keys[#keys] or after
end

-- The level of the present lane of this name; nil: there is none.
local function level_named(p, name)
  for level, known in pairs(p.settings.lanes) do
    if known == name then return tonumber(level) + p.shift end
  end
  local level = p.settings.order == 'priority' and tonumber(name)
  return level and level + p.shift
end

local GAUGES = { ready = true, ready_bytes = true, delayed = true, leased = true, leased_bytes = true, dead = true, bytes = true }

-- All gauges and counters: each the level of its lane, what it is, and how much.
local function all_gauges(p)
  local all, fields = {}, redis.call('HGETALL', p.base .. ':g')
  for at = 1, #fields, 2 do
    local level, what = string.match(fields[at], '^(-?%d+):(.+)$')
    all[#all + 1] = { tonumber(level), what, tonumber(fields[at + 1]), fields[at] }
  end
  return all
end

-- Lanes that were left are gone. A lane has counted what one of its name had counted, if it is there.
local function finish(p)
  local over, has, all = {}, {}, all_gauges(p)
  for _, one in ipairs(all) do has[one[1]] = true end
  for _, one in ipairs(all) do
    if LEFT.is_left(p, one[1]) then
      over[#over + 1] = one[4]
      local level = not GAUGES[one[2]] and level_named(p, LEFT.name_of(p, one[1]))
      if level and (has[level] or p.left.has_same or p.settings.order ~= 'priority') then count(p, level, one[2], one[3]) end
    end
  end
  in_pieces('HDEL', p.base .. ':g', over)
  redis.call('HDEL', p.base .. ':c', 'left', 'goes')
  p.left, p.goes = nil, nil
end

-- Goes on with what is left. Answers whether that is nothing any more.
function LEFT.go_on(p, is_first)
  local phase, after = string.match(p.goes, '^(%a+)(.*)$')
  if phase == 'end' then return finish(p) end
  local left = LEFT.room(is_first)
  while left > 0 and phase ~= 'end' do
    sync(p)
    local keys, last = next_of(p, phase, after, left)
    fetch(p, keys)
    for _, key in ipairs(keys) do
      local m = message(p, key)
      if LEFT.is_left(p, lane_at(p, m)) then
        detach(p, key, m)
        attach(p, key, m)
      end
    end
    after = last
    if #keys == 0 or (phase ~= 'order' and #keys < left) then phase, after = NEXT[phase], '' end
    left = left - #keys
  end
  -- What nobody was given meanwhile may go.
  p.shows_again = p.counts_leases and phase ~= 'leased'
  p.counts_leases = phase == 'leased'
  p.goes = phase .. after
  return phase == 'end'
end

-- The lanes of all that is there, the lowest first: each its level, its number and its name. Those that are left already keep both.
local function lanes_to_leave(p)
  local seen, levels, raw = {}, {}, {}
  local function see(level)
    if not seen[level] then levels[#levels + 1] = level end
    seen[level] = true
  end
  for _, level in ipairs(redis.call('HKEYS', p.base .. ':n')) do see(tonumber(level)) end
  for _, one in ipairs(all_gauges(p)) do see(one[1]) end
  table.sort(levels)
  local lanes = {}
  for _, level in ipairs(levels) do
    if LEFT.is_left(p, level) then lanes[#lanes + 1] = p.left.by_level[level] else raw[#raw + 1] = level - p.shift end
  end
  for at, number in ipairs(LEFT.number(p.epoch, raw)) do
    local level = raw[at] + p.shift
    lanes[#lanes + 1] = { level, number, name_of(p, level) }
  end
  return lanes
end

-- All lanes are left from now on, for those of these settings.
function LEFT.begin(p, settings, has_same)
  local is_first_use = settings.keys and not p.keys
  local left = { lanes = lanes_to_leave(p), first = p.epoch == 0 and p.settings.order or p.left and p.left.first or nil, ungrouped = p.left and p.left.ungrouped, has_same = has_same }
  p.settings, p.keys = settings, settings.keys
  p.epoch = p.epoch + 1
  p.shift = p.epoch * SPAN
  -- Where lanes are the same, their turns go on.
  if p.turn then p.turn = { p.turn[1] + SPAN, p.turn[2] } end
  if is_first_use then left.ungrouped = LEFT.floor(p) end
  local c = { 'epoch', text(p.epoch), 'left', cmsgpack.pack(left), 'goes', 'leased' }
  redis.call('HSET', p.base .. ':c', unpack(c))
  LEFT.read(p, c[2], c[4], c[6])
end

-- What gauges and counters are called outside, those of lanes that are being left with the names of these.
function LEFT.tell_gauges(p, fields)
  for at = 1, #fields, 2 do
    local level, what = string.match(fields[at], '^(-?%d+):(.+)$')
    fields[at] = text(LEFT.outside(p, tonumber(level))) .. ':' .. what
  end
  for _, lane in ipairs(p.left and p.left.lanes or {}) do
    fields[#fields + 1] = text(lane[2]) .. ':name=' .. lane[3]
    fields[#fields + 1] = 1
  end
end

-- Lanes of a place in which there is nothing: each has counted what one of its name had counted.
function LEFT.rename(p, settings)
  local counted = {}
  for _, one in ipairs(all_gauges(p)) do
    local name = name_of(p, one[1])
    counted[name] = counted[name] or {}
    if not GAUGES[one[2]] then counted[name][one[2]] = one[3] end
  end
  redis.call('DEL', p.base .. ':g')
  p.settings = settings
  if settings.order == 'priority' then return end
  for _, band in ipairs(settings.order) do
    for what, so_far in pairs(counted[name_of(p, band.level + p.shift)] or {}) do count(p, band.level + p.shift, what, so_far) end
  end
end

end
