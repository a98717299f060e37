-- What holds for a place, and whether it is there at all.

-- Settings as callers say them, by their JSON: packed once for all places that are told the same.
local packs, packs_count = {}, 0

local function pack_settings(json)
  local packed = packs[json]
  if not packed then
    if packs_count >= 1000 then packs, packs_count = {}, 0 end
    packed = cmsgpack.pack(cjson.decode(json))
    packs[json] = packed
    packs_count = packs_count + 1
  end
  return packed
end

-- What a call that changes nothing is answered, of what is read of `:c`, without anything being written: where slots are counted, or something was to happen by itself by now, that cannot be said.
local function as_it_stands(base, _, packed, calls, heads, last, leaving, over, slots)
  if over or slots then return nil end
  local settings = read_settings(packed)
  local p = { base = base, keys = settings.keys }
  local time = redis.call('TIME')
  local now = math.max(tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), tonumber(last))
  local wakes_at = earlier(first_of(p, 'alarms'), first_of(p, 'alive'))
  if is_over(wakes_at, now) or (p.keys and p.keys.rate and is_over(first_of(p, 'wakes'), now)) then return nil end
  local head = settings.by_clock and heads or not settings.by_clock and head_of(p) or ''
  return { 'ok', now, wakes_at, head, { 0 }, tonumber(calls), tonumber(leaving or 0) > 0 and 1 or 0, {} }
end

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

local GAUGES = { ready = true, ready_bytes = true, delayed = true, leased = true, leased_bytes = true, dead = true, bytes = true }

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
  for _, priority in ipairs(settings.scheme == 'signed' and KEPT or {}) do
    different, priorities[priority] = different + 1, true
  end
  for _, key in ipairs(all) do
    local priority = message(p, key)[PRIORITY]
    if not priorities[priority] then different = different + 1 end
    priorities[priority] = true
  end
  return different > LANES_MAX and 'too_many_lanes' or nil
end

-- Makes a place, or has other settings hold for it. Arguments: (of the version that is now, or empty), caller, number, the new version, settings as JSON, who says so: `declared`
-- or `policy`. A version before that which holds changes nothing, nor does what holds already: whoever begins to serve a queue says it to all its places. Answers 1 if the place is new, or why it
-- cannot be.
local function configure(keys, args)
  local base, version, packed = keys[1], tonumber(args[4]), pack_settings(args[5])
  local there = redis.call('HMGET', base .. ':c', 'version', 'settings', 'calls', 'heads', 'now', 'leaving', 'over', 'slots')
  local since, header = tonumber(there[1] or nil), { '', args[2], '' }
  if since and (since > version or (since == version and there[2] == packed)) then
    return as_it_stands(base, unpack(there)) or answer(begin(keys, header), { 0 })
  end
  local settings = read_settings(packed)
  if not since then
    if version < tonumber(redis.call('GET', base .. ':gone') or 0) then return { 'gone' } end
    local c = { 'version', args[4], 'settings', packed, 'seq', '0', 'lease', '0', 'waiting', '0', 'bytes', '0', 'leased', '0', 'now', '0' }
    if settings.rate then
      for _, one in ipairs({ 'tokens', text(settings.rate.messages * settings.rate.per_ms), 'filled', '0' }) do c[#c + 1] = one end
    end
    redis.call('HSET', base .. ':c', unpack(c))
  end
  local p = begin(keys, header)
  if not since then
    redis.call('HSET', base .. ':c', 'used', text(p.now), 'active', text(p.now))
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
  redis.call('HSET', base .. ':c', 'version', args[4], 'settings', packed)
  if args[6] == 'policy' then
    be_over(p)
    come_within(p)
  end
  return answer(p, { 0 })
end

local ALL_KEYS = {
  ':c', ':m', ':b', ':o', ':d', ':l', ':x', ':t', ':i', ':k', ':n', ':g', ':f', ':w', ':y', ':p', ':z', ':h', ':q', ':v', ':vt', ':e', ':el', ':j', ':jt', ':r', ':ru', ':s', ':a',
}

-- Nothing is left of a place; but that it is gone, for a minute: what was said of it before may come yet, as a call has ten seconds, and would make it again for nobody. Argument: the version from which on
-- the queue is not there. Answers 1 if there was something.
local function forget(keys, args)
  local base = keys[1]
  local time, calls = redis.call('TIME'), redis.call('HGET', base .. ':c', 'calls')
  local all = {}
  for at, name in ipairs(ALL_KEYS) do all[at] = base .. name end
  redis.call('UNLINK', unpack(all))
  redis.call('SET', base .. ':gone', args[4], 'PX', 60000)
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

register_always('ot_configure', configure)
register_always('ot_forget', forget)
register_always('ot_use', use)
register_always('ot_sweep', sweep)
