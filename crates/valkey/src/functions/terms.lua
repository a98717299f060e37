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
local function as_it_stands(base, _, packed, calls, heads, last, leaving, over, slots, epoch, left, rules)
  if over or slots or left or rules then return nil end
  local settings = read_settings(packed)
  local p = { base = base, keys = settings.keys }
  LEFT.read(p, epoch)
  local time = redis.call('TIME')
  local now = math.max(tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000), tonumber(last))
  local wakes_at = earlier(first_of(p, 'alarms'), first_of(p, 'alive'))
  if is_over(wakes_at, now) or (p.keys and p.keys.rate and is_over(first_of(p, 'wakes'), now)) then return nil end
  local alone = not settings.by_clock and head_of(p)
  local head = settings.by_clock and heads or alone and LEFT.told(p, alone) or ''
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

-- About so many messages are looked at before each priority gets a lane.
local PRIORITIES_MAX = 1000

-- Priorities of some messages, and how many there are with those for which a lane is kept.
local function some_priorities(p)
  local priorities, different, looked_at, cursor = {}, 0, 0, '0'
  local function see(priority)
    if not priorities[priority] then different = different + 1 end
    priorities[priority] = true
  end
  for _, priority in ipairs(KEPT) do see(priority) end
  repeat
    local page = redis.call('HSCAN', p.base .. ':m', cursor, 'COUNT', 100)
    for at = 2, #page[2], 2 do see(cmsgpack.unpack(page[2][at])[PRIORITY]) end
    cursor, looked_at = page[1], looked_at + #page[2] / 2
  until cursor == '0' or looked_at >= PRIORITIES_MAX
  return different
end

-- Why a declaration cannot have other settings hold while messages are there. Only the scheme `signed` has more priorities than there may be lanes.
local function fixed(p, settings)
  if is_empty(p) then return nil end
  if not equal(settings.scheme, p.settings.scheme) then return 'scheme' end
  if settings.last_value ~= p.settings.last_value then return 'last_value' end
  if settings.scheme ~= 'signed' or settings.order ~= 'priority' or p.settings.order == 'priority' then return nil end
  return some_priorities(p) > LANES_MAX and 'too_many_lanes' or nil
end

-- Other settings hold for what is there.
local function rule(p, was, settings)
  local is_same, has_messages = same_lanes(was, settings), redis.call('HLEN', p.base .. ':m') > 0
  if has_messages and (not is_same or (settings.keys and not was.keys)) then
    if was.keys and not equal(was.keys, settings.keys) then regroup(p, settings.keys) end
    return LEFT.begin(p, settings, is_same)
  end
  if not equal(was.keys, settings.keys) then regroup(p, settings.keys) end
  if is_same then p.settings = settings else LEFT.rename(p, settings) end
end

-- Whose a place is: `of` in its counters, the incarnation of the definitions, the virtual host and the name of the queue. One that an older version made says so from the first time on that it is told, if the name is right.
local function belong(base, of, settings, args)
  if is_anothers(of, args[1]) then return false end
  if of or args[1] == '' then return true end
  if settings and read_settings(settings).name ~= cjson.decode(args[5]).name then return false end
  redis.call('HSET', base .. ':c', 'of', args[1], 'queue', args[7])
  return true
end

-- Makes a place, or has other settings hold for it. Arguments: whose place it is, caller, number, the new version, settings as JSON, who says so: `declared` or `policy`, and how the queue is defined, for whoever finds the
-- place when definitions are lost. A version before that which holds changes nothing, nor does what holds already: whoever begins to serve a queue says it to all its places. Answers 1 if the place is new, and the version that
-- holds; or why it cannot be.
local function configure(keys, args)
  local base, version, packed = keys[1], tonumber(args[4]), pack_settings(args[5])
  local of = redis.call('HGET', base .. ':c', 'of')
  local there = redis.call('HMGET', base .. ':c', 'version', 'settings', 'calls', 'heads', 'now', 'leaving', 'over', 'slots', 'epoch', 'left', 'rules')
  local since, header = tonumber(there[1] or nil), { '', args[2], '' }
  if since and not belong(base, of, there[2], args) then return { 'another', of or read_settings(there[2]).name } end
  if since and (since > version or (since == version and there[2] == packed)) then
    local what = as_it_stands(base, unpack(there)) or answer(begin(keys, header), { 0 })
    what[5] = { 0, since }
    return what
  end
  local settings = read_settings(packed)
  if not since then
    if version < tonumber(redis.call('GET', base .. ':gone') or 0) then return { 'gone' } end
    local c = { 'of', args[1], 'queue', args[7], 'version', args[4], 'settings', packed, 'seq', '0', 'lease', '0', 'waiting', '0', 'bytes', '0', 'leased', '0', 'now', '0' }
    if settings.rate then
      for _, one in ipairs({ 'tokens', text(settings.rate.messages * settings.rate.per_ms), 'filled', '0' }) do c[#c + 1] = one end
    end
    redis.call('HSET', base .. ':c', unpack(c))
  end
  local p = begin(keys, header)
  if not since then
    redis.call('HSET', base .. ':c', 'used', text(p.now), 'active', text(p.now))
    return answer(p, { 1, version })
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
  rule(p, was, settings)
  redis.call('HSET', base .. ':c', 'version', args[4], 'settings', packed, 'queue', args[7])
  if p.rules then rule_groups(p) end
  if p.left and LEFT.go_on(p, true) then
    -- All is written down before what was left is forgotten.
    answer(p, false)
    p = open(keys, header)
    p.now = now
    LEFT.go_on(p)
  end
  if args[6] == 'policy' then
    be_over(p)
    if not p.left then come_within(p) end
  end
  return answer(p, { 0, version })
end

local ALL_KEYS = {
  ':c', ':m', ':b', ':o', ':d', ':l', ':x', ':t', ':i', ':k', ':n', ':g', ':f', ':w', ':y', ':p', ':z', ':h', ':q', ':v', ':vt', ':e', ':el', ':j', ':jt', ':r', ':ru', ':s', ':a',
}

-- Nothing is left of a place; but that it is gone, for a minute: what was said of it before may come yet, as a call has ten seconds, and would make it again for nobody. Argument: the version from which on
-- the queue is not there. Answers 1 if there was something.
local function forget(keys, args)
  local base = keys[1]
  local of = redis.call('HGET', base .. ':c', 'of')
  if is_anothers(of, args[1]) then return { 'another', of } end
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

-- Whose a place is, and nothing is changed. Answers `of`, how its queue is defined (of the first place), its name, and how many messages there are.
local function whose(keys)
  local base = keys[1]
  local c = redis.call('HMGET', base .. ':c', 'of', 'queue', 'settings')
  if not c[3] then return { 'gone' } end
  return { c[1] or '', c[2] or '', read_settings(c[3]).name, redis.call('HLEN', base .. ':m') }
end

-- A place is of another queue from now on. Arguments: whose it is now (or empty), whose it is to be. Answers 1, or 0 where it is neither.
local function adopt(keys, args)
  local c = keys[1] .. ':c'
  local got = redis.call('HMGET', c, 'of', 'settings')
  local of = got[1] or ''
  if not got[2] or (of ~= args[1] and of ~= args[2]) then return 0 end
  redis.call('HSET', c, 'of', args[2])
  return 1
end

redis.register_function({ function_name = 'ot_whose', callback = whose, flags = { 'no-writes', 'allow-oom' } })
register_always('ot_adopt', adopt)
register_always('ot_configure', configure)
register_always('ot_forget', forget)
register_always('ot_use', use)
register_always('ot_sweep', sweep)
