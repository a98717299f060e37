-- Seeing a place, and what holds for it.

-- Every gauge and counter of its lanes, name by name; of each lane with something ready, its level and when its oldest was published; the first sequence there and
-- the last one given; how many consumers other processes have.
local function view(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local ended = answer(p, false)
  local oldest, first = {}, nil
  local function see(key) if key and (not first or key < first) then first = key end end
  for _, level in ipairs(ready_levels(p)) do
    local member = redis.call('ZRANGE', p.base .. ':o', '[' .. rank_of(level), '+', 'BYLEX', 'LIMIT', 0, 1)[1]
    oldest[#oldest + 1] = { level, message(p, key_in(member))[SINCE] }
    see(key_in(member))
  end
  for _, set in ipairs({ 'delayed', 'leased', 'dead' }) do see(redis.call('ZRANGE', p.base .. NAMES[set], 0, 0)[1]) end
  ended[5] = { redis.call('HGETALL', p.base .. ':g'), oldest, first and seq_of(first) or p.seq + 1, p.seq, ATTENDANCE.of_others(p, p.caller) }
  return ended
end

local function shown(p, keys, with_content)
  fetch(p, keys)
  local what = {}
  for _, key in ipairs(keys) do
    local m = message(p, key)
    if m then what[#what + 1] = { seq_of(key), m, with_content and redis.call('HGET', p.base .. ':b', key) or false } end
  end
  return what
end

-- So many sequences of a set after this one, or before it.
local function page_of(p, set, after, limit, is_newest)
  local key = p.base .. NAMES[set]
  if is_newest then return redis.call('ZRANGE', key, after == '' and '+' or '(' .. after, '-', 'BYLEX', 'REV', 'LIMIT', 0, limit) end
  return redis.call('ZRANGE', key, after == '' and '-' or '(' .. after, '+', 'BYLEX', 'LIMIT', 0, limit)
end

-- A page of the messages that stand so, by sequence. Arguments: `published` or `newest`, where the page before ended (a sequence, or empty), most messages, whether
-- with what they say (1 or 0), then `ready`, `delayed`, `leased`, `dead`, one or several. Answers `[sequence, message, content]` of each.
local function browse(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local ended = answer(p, false)
  local is_newest, limit = args[4] == 'newest', tonumber(args[6])
  local after = args[5] ~= '' and key_of(tonumber(args[5])) or ''
  local all = {}
  for at = 8, #args do
    if args[at] == 'ready' then
      for _, level in ipairs(ready_levels(p)) do
        local rank, behind = rank_of(level), rank_of(level - 1)
        local from, to = after == '' and '[' .. rank or '(' .. rank .. after, '(' .. behind
        local members
        if is_newest then
          from = after == '' and '(' .. behind or '(' .. rank .. after
          members = redis.call('ZRANGE', p.base .. ':o', from, '[' .. rank, 'BYLEX', 'REV', 'LIMIT', 0, limit)
        else
          members = redis.call('ZRANGE', p.base .. ':o', from, to, 'BYLEX', 'LIMIT', 0, limit)
        end
        for _, member in ipairs(members) do all[#all + 1] = key_in(member) end
      end
    else
      for _, key in ipairs(page_of(p, args[at], after, limit, is_newest)) do all[#all + 1] = key end
    end
  end
  table.sort(all, function(a, b) if is_newest then return a > b end return a < b end)
  ended[5] = shown(p, { unpack(all, 1, math.min(limit, #all)) }, args[7] == '1')
  return ended
end

-- ---- what holds for the place ----

-- What leaves may yet stay.
local function is_empty(p) return redis.call('HLEN', p.base .. ':m') == 0 and p.leaving == 0 end

local function equal(a, b)
  if type(a) ~= 'table' or type(b) ~= 'table' then return a == b end
  for key, is in pairs(a) do
    if not equal(is, b[key]) then return false end
  end
  for key in pairs(b) do
    if a[key] == nil then return false end
  end
  return true
end

-- Whether lanes are the same by both, of the same names.
local function same_lanes(a, b) return equal(a.order, b.order) and equal(a.levels, b.levels) and equal(a.lanes, b.lanes) end

local function same_picker(a, b) return a.picker == b.picker and a.aging_ms == b.aging_ms and equal(a.weights, b.weights) end

local GAUGES = { ready = true, ready_bytes = true, delayed = true, leased = true, dead = true, bytes = true }

-- What lanes have counted so far, by their names.
local function counted(p)
  local all, fields = {}, redis.call('HGETALL', p.base .. ':g')
  for i = 1, #fields, 2 do
    local level, what = string.match(fields[i], '^(-?%d+):(.+)$')
    if not GAUGES[what] then
      local name = name_of(p, tonumber(level))
      all[name] = all[name] or {}
      all[name][what] = tonumber(fields[i + 1])
    end
  end
  return all
end

-- Every message stands in the lane that takes it now. A lane has counted what one of its name had counted, and a message that comes into one of another name has
-- moved there.
local function change_lanes(p, now)
  local all = redis.call('HKEYS', p.base .. ':m')
  table.sort(all)
  fetch(p, all)
  local counters, left, levels = counted(p), {}, {}
  for i, key in ipairs(all) do
    local m = message(p, key)
    left[i] = name_of(p, lane_of(p, m[PRIORITY]))
    detach(p, key, m)
  end
  -- What is detached is counted nowhere.
  redis.call('DEL', p.base .. ':g')
  p.gauges = {}
  p.settings = now
  if now.order ~= 'priority' then
    for _, band in ipairs(now.order) do levels[band.level] = true end
  end
  for _, key in ipairs(all) do
    local m = message(p, key)
    levels[lane_of(p, m[PRIORITY])] = true
    attach(p, key, m)
  end
  local by_name = {}
  for level in pairs(levels) do
    local name = name_of(p, level)
    by_name[name] = level
    for what, so_far in pairs(counters[name] or {}) do count(p, level, what, so_far) end
  end
  for i, key in ipairs(all) do
    local level = lane_of(p, message(p, key)[PRIORITY])
    if name_of(p, level) ~= left[i] then
      count(p, level, 'published', 1)
      if by_name[left[i]] then count(p, by_name[left[i]], 'moved', 1) end
    end
  end
end

-- Why a declaration cannot have other settings hold while messages are there.
local function fixed(p, settings)
  if is_empty(p) then return nil end
  if not equal(settings.scheme, p.settings.scheme) then return 'scheme' end
  if settings.last_value ~= p.settings.last_value then return 'last_value' end
  if settings.order ~= 'priority' or p.settings.order == 'priority' then return nil end
  local all, priorities, different = redis.call('HKEYS', p.base .. ':m'), {}, 0
  fetch(p, all)
  for _, key in ipairs(all) do
    local priority = message(p, key)[PRIORITY]
    if not priorities[priority] then different = different + 1 end
    priorities[priority] = true
  end
  return different > LANES_MAX and 'too_many_lanes' or nil
end

-- Makes a place, or has other settings hold for it. Arguments: (of the version that is now, or empty), caller, number, the new version, settings as JSON, who says so: `declared`
-- or `policy`. An older version than what holds changes nothing. Answers 1 if the place is new, or why it cannot be.
local function configure(keys, args)
  local base, version = keys[1], tonumber(args[4])
  local there = redis.call('HGET', base .. ':c', 'version')
  if there and tonumber(there) >= version then return answer(begin(keys, { '', args[2], '' }), { 0 }) end
  local settings = cjson.decode(args[5])
  if not there then
    local c = { 'version', args[4], 'settings', cmsgpack.pack(settings), 'seq', '0', 'lease', '0', 'waiting', '0', 'bytes', '0', 'leased', '0', 'now', '0' }
    if settings.rate then
      for _, one in ipairs({ 'tokens', text(settings.rate.messages * settings.rate.per_ms), 'filled', '0' }) do c[#c + 1] = one end
    end
    redis.call('HSET', base .. ':c', unpack(c))
  end
  local header = { '', args[2], '' }
  local p = begin(keys, header)
  if not there then
    redis.call('HSET', base .. ':c', 'used', text(p.now))
    return answer(p, { 1 })
  end
  -- What time has brought about is written down: all that follows asks for everything there is.
  answer(p, false)
  local now = p.now
  p = open(keys, header)
  p.now = now
  local why = args[6] == 'declared' and fixed(p, settings)
  if why then return answer(p, { why }) end
  local was = p.settings
  if not (same_picker(was, settings) and same_lanes(was, settings)) then
    p.turn = nil
    redis.call('HDEL', base .. ':c', 'turn')
  end
  if settings.rate then
    local most = settings.rate.messages * settings.rate.per_ms
    p.tokens = was.rate and math.min(most, math.floor(p.tokens * settings.rate.per_ms / was.rate.per_ms)) or most
    if not was.rate then p.filled = p.now end
  end
  SLOTS.drain(p, was, settings)
  if SLOTS.are_limited(settings) then p.slots = p.slots or {} end
  p.has_changed.order, p.has_changed.offers = true, true
  if not equal(was.keys, settings.keys) then regroup(p, settings.keys) end
  if same_lanes(was, settings) then p.settings = settings else change_lanes(p, settings) end
  redis.call('HSET', base .. ':c', 'version', args[4], 'settings', cmsgpack.pack(settings))
  if args[6] == 'policy' then
    p.over = '1'
    redis.call('HSET', base .. ':c', 'over', '1')
    come_within(p)
  end
  return answer(p, { 0 })
end

local ALL_KEYS = {
  ':c', ':m', ':b', ':o', ':d', ':l', ':x', ':t', ':i', ':k', ':n', ':g', ':f', ':w', ':y', ':p', ':z', ':h', ':q', ':v', ':vt', ':e', ':el', ':j', ':jt', ':r', ':ru', ':s', ':a',
}

-- Nothing is left of a place. Answers 1 if there was something.
local function forget(keys)
  local base = keys[1]
  local time, calls = redis.call('TIME'), redis.call('HGET', base .. ':c', 'calls')
  local all = {}
  for at, name in ipairs(ALL_KEYS) do all[at] = base .. name end
  redis.call('UNLINK', unpack(all))
  return { 'ok', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), NEVER, '', { calls and 1 or 0 }, tonumber(calls or 0) + 1, 0, {} }
end

-- Lets time pass, and nothing else.
local function sweep(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  return answer(p, {})
end

-- A queue is used (1), or not (0). Arguments: which, and how long it may be unused, ms. Answers in how many ms it has been unused for so long.
local function use(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local used = tonumber(redis.call('HGET', p.base .. ':c', 'used') or nil)
  if args[4] == '1' or not used then
    used = p.now
    redis.call('HSET', p.base .. ':c', 'used', text(used))
  end
  return answer(p, { math.max(0, used + tonumber(args[5]) - p.now) })
end

-- What goes next, and nothing is changed: not even time passes. Where nothing but lanes decides it. Arguments: most messages, the most urgent level (or empty: whichever is). Answers how many calls there
-- have been, what the last one showed, and of each message the member and its bytes, 24 bytes.
local function peek(keys, args)
  local base = keys[1]
  local c = redis.call('HMGET', base .. ':c', 'calls', 'heads')
  if not c[1] then return { 'gone' } end
  local from = args[2] ~= '' and '[' .. rank_of(tonumber(args[2])) or '-'
  local members = redis.call('ZRANGE', base .. ':o', from, '+', 'BYLEX', 'LIMIT', 0, tonumber(args[1]))
  if #members == 0 then return { tonumber(c[1]), c[2] or '', '' } end
  local which = {}
  for at, member in ipairs(members) do which[at] = key_in(member) end
  for at, packed in ipairs(redis.call('HMGET', base .. ':m', unpack(which))) do
    members[at] = members[at] .. key_of(cmsgpack.unpack(packed)[BYTES])
  end
  return { tonumber(c[1]), c[2] or '', table.concat(members) }
end

redis.register_function({ function_name = 'ot_peek', callback = peek, flags = { 'no-writes', 'allow-oom' } })
register_always('ot_use', use)
register_always('ot_view', view)
register_always('ot_browse', browse)
register_always('ot_configure', configure)
register_always('ot_forget', forget)
register_always('ot_sweep', sweep)
