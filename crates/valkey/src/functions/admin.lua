-- What administrators do to messages.

-- What one is called by: its own id, else `seq-` and its sequence. A dead letter that gave up its id to another message is found by its sequence only.
local function find_by_name(p, name)
  local key = pending(p, name)
  if key then return key end
  local digits = string.match(name, '^seq%-(%d+)$')
  if digits then
    key = key_of(tonumber(digits))
    if message(p, key) then return key end
  end
  key = id_key(p, name)
  return key and message(p, key) and key or nil
end

-- The messages that are meant and for which it can be done: `id` and one name, or `seqs` and sequences. Of one that is named, why it cannot be done.
local function chosen(p, args, at, can)
  if args[at] == 'id' then
    local key = find_by_name(p, args[at + 1])
    if not key then return nil, 'no_such_message' end
    local why = can(key, message(p, key))
    if why then return nil, why end
    return { key }
  end
  local keys, seen = {}, {}
  for i = at + 1, #args do
    local key = key_of(tonumber(args[i]))
    if not seen[key] then
      seen[key] = true
      keys[#keys + 1] = key
    end
  end
  table.sort(keys)
  fetch(p, keys)
  local able = {}
  for _, key in ipairs(keys) do
    local m = message(p, key)
    if m and not can(key, m) then able[#able + 1] = key end
  end
  return able
end

local function set_priority(p, key, m, priority, given)
  if m[PRIORITY] == priority then
    m[GIVEN] = given
    return touch(p, key)
  end
  detach(p, key, m)
  count(p, lane_of(p, m[PRIORITY]), 'moved', 1)
  m[PRIORITY], m[GIVEN] = priority, given
  count(p, lane_of(p, priority), 'published', 1)
  attach(p, key, m)
end

-- A function of administrators: done once, answered with how many messages it touched, or with why the one that was named is refused.
local function administer(keys, args, at, can, act)
  return once(keys, args, function(p)
    local all, why = chosen(p, args, at, function(key, m) return can(p, key, m) end)
    local what
    if all then
      local touched = 0
      for _, key in ipairs(all) do
        local m = message(p, key)
        -- One before it may have changed what can be done.
        if m and act(p, key, m) ~= false then touched = touched + 1 end
      end
      what = { touched }
    else
      what = { why }
    end
    return what
  end)
end

-- Another priority; each keeps its sequence. Arguments: the priority, what was given, then which.
local function reprioritise(keys, args)
  local priority, given = tonumber(args[4]), args[5]
  local function can(p, _, m)
    if not has_lane(p, lane_of(p, priority), {}) then return 'too_many_lanes' end
    if m[STATE] == LEASED then return 'leased' end
    if m[STATE] == DEAD then return 'dead' end
    return nil
  end
  return administer(keys, args, 6, can, function(p, key, m) set_priority(p, key, m, priority, given) end)
end

-- Arguments: which.
local function remove(keys, args)
  return administer(keys, args, 4, function() return nil end, function(p, key, m) settle(p, key, m, 'removed') end)
end

-- Arguments: which. Who works on one by a lease of its own is told when it asks for more time; all else ends.
local function cancel(keys, args)
  local function can(_, _, m)
    if m[STATE] == DEAD then return 'dead' end
    return nil
  end
  return administer(keys, args, 4, can, function(p, key, m)
    if m[STATE] ~= LEASED or m[HOLDER] then return conclude(p, key, m, 'cancelled', 'removed') end
    m[WORK] = m[WORK] or { p.now, NEVER, false }
    m[WORK][3] = true
    touch(p, key)
  end)
end

-- Dead letters back into their lanes. Arguments: another priority and what was given (or empty), then which.
local function replay(keys, args)
  local promoted, given = tonumber(args[4]), args[5]
  local function can(p, _, m)
    if not m[DEATHS] and not m[RECORD] then return 'not_dead' end
    if m[STATE] == LEASED then return 'leased' end
    if m[STATE] ~= DEAD then return 'not_dead' end
    local priority = promoted or m[PRIORITY]
    if pending(p, m[ID]) or value(p, m[KEY]) then return 'id_pending' end
    local level = lane_of(p, priority)
    if not has_lane(p, level, {}) then return 'too_many_lanes' end
    return no_room(p, level, priority, m[BYTES], new_tally())
  end
  return administer(keys, args, 6, can, function(p, key, m)
    if can(p, key, m) then return false end
    local priority = promoted or m[PRIORITY]
    set_priority(p, key, m, priority, promoted and given or m[GIVEN])
    detach(p, key, m)
    m[STATE], m[COUNT] = READY, 0
    if is_over(m[EXPIRES], p.now) then m[EXPIRES] = NEVER end
    attach(p, key, m)
    index(p, key, m)
    evict(p, key, m)
  end)
end

-- The queue that a message would go back to: where the work on it ended or it died, whichever was later.
local function home_of(m)
  local death, record = m[DEATHS] and m[DEATHS][2][1], m[RECORD]
  if record and not (death and death[5] > record[6]) then return record[2] end
  return death and death[2]
end

-- What came here from another place, as a dead letter or a record, leaves to go back there. Arguments: another priority and what was given (or empty), then which.
local function send_home(keys, args)
  local promoted, given = tonumber(args[4]), args[5]
  local function can(p, _, m)
    local home = home_of(m)
    if not home or m[STATE] == DEAD then return 'not_dead' end
    if m[STATE] == LEASED then return 'leased' end
    if home == p.settings.name then return 'not_dead' end
    return nil
  end
  return administer(keys, args, 6, can, function(p, key, m)
    leave(p, key, m, 'home', false, p.leavers)
    if promoted then m[PRIORITY], m[GIVEN] = promoted, given end
  end)
end

-- Takes out what stands so, the oldest first. Arguments: `ready`, `delayed`, `dead`, or `waiting` for the first two; most messages. Answers how many, and whether there may
-- be more.
local PURGED = { leased = {}, ready = { 'order' }, delayed = { 'delayed' }, dead = { 'dead' }, waiting = { 'order', 'delayed' } }

local function purge(keys, args)
  return once(keys, args, function(p)
    sync(p)
    local left, touched = tonumber(args[5]), 0
    for _, set in ipairs(PURGED[args[4]]) do
      local members = left > 0 and redis.call('ZRANGE', p.base .. NAMES[set], 0, left - 1) or {}
      local all = {}
      for i, member in ipairs(members) do all[i] = set == 'order' and key_in(member) or member end
      fetch(p, all)
      for _, key in ipairs(all) do settle(p, key, message(p, key), 'removed') end
      left, touched = left - #all, touched + #all
    end
    local what = { touched, left == 0 and 1 or 0 }
    return what
  end)
end

-- One message. Argument: what it is called by. Answers nothing, or `[sequence, message, content]`, the level of its lane, and how many go before it, in all and in its lane; -1 where that is not known.
local function find_one(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local ended, key = answer(p, false), find_by_name(p, args[4])
  ended[5] = {}
  if key then
    local m = message(p, key)
    local ahead, in_lane = position(p, key, m)
    ended[5] = { { seq_of(key), m, redis.call('HGET', p.base .. ':b', key) }, LEFT.outside(p, lane_at(p, m)), ahead, in_lane }
  end
  return ended
end

register_always('ot_find', find_one)
register_always('ot_reprioritise', reprioritise)
register_always('ot_remove', remove)
register_always('ot_cancel', cancel)

-- Ends what waits, as its last attempt says late. Arguments: which attempt, how (as of `ot_settle`), an exit code, an error, the end of the output (as of `ot_finish`), then which.
register_always('ot_finish_late', function(keys, args)
  local attempt, how = tonumber(args[4]), args[5]
  local function can(_, _, m)
    if m[STATE] == LEASED then return 'leased' end
    if m[STATE] == DEAD then return 'dead' end
    if attempt == 0 or m[COUNT] ~= attempt then return 'stale_receipt' end
    return nil
  end
  return administer(keys, args, 9, can, function(p, key, m)
    if how ~= 'ack' and how ~= 'reject' and how ~= 'timeout' then return end
    local last = m[ATTEMPTS] and m[ATTEMPTS][#m[ATTEMPTS]]
    if last and last[2] then m[WORK] = { last[2], NEVER, false } end
    local report = RECORDS.told(args, 6)
    if how == 'ack' then return conclude(p, key, m, 'completed', 'acked', report) end
    finish(p, key, m, how == 'timeout' and how or 'rejected', report)
  end)
end)
register_always('ot_replay', replay)
register_always('ot_purge', purge)
register_always('ot_send_home', send_home)
