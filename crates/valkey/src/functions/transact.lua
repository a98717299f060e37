-- Transactions over several places: each first says whether it can do its part, and keeps room for it; then all do theirs, or none.
--
-- What is prepared is kept under the transaction's name, with the time by which its end is overdue: then whoever notices asks the place that decided, and ends it.
-- A lease that is to be settled belongs to the transaction until then: its receipt is over, and it does not end by itself.

-- The parts of a transaction: messages, as many as are said, then how, a delay, the sequence and the number of each lease.
local function read_parts(args, at)
  local messages, settlements = {}, {}
  local last = at + tonumber(args[at]) * PER_MESSAGE
  for i = at + 1, last, PER_MESSAGE do messages[#messages + 1] = read_message(args, i) end
  for i = last + 1, #args, 4 do
    settlements[#settlements + 1] = { args[i], tonumber(args[i + 1]) or false, tonumber(args[i + 2]), tonumber(args[i + 3]) }
  end
  return messages, settlements
end

-- Of each whether it was taken before by its number: in another call, or by what comes before it in this one.
local function taken_before(p, messages)
  local are_taken, seen = {}, {}
  for which, m in ipairs(messages) do
    local origin = m.origin and m.origin[1] .. ZERO .. key_of(m.origin[2]) .. m.origin[3]
    are_taken[which] = was_taken(p, m.origin) or (origin and seen[origin]) or false
    if origin then seen[origin] = true end
  end
  return are_taken
end

-- Why one of several messages is not taken, and which it is, from 0.
local function refused(p, messages, tally)
  local are_taken = taken_before(p, messages)
  for which, m in ipairs(messages) do
    local why = false
    if not are_taken[which] then why = check(p, m, tally) end
    if why then return { why, which - 1 } end
    if why == nil then
      if not m.is_at_once then
        tally.messages = tally.messages + 1
        tally.bytes = tally.bytes + m.size
      end
      tally.opened[lane_of(p, m.priority)] = true
    end
  end
  return nil
end

-- The first lease that does not hold, or is there twice, as a refusal.
local function stale(p, settlements)
  local seen = {}
  for which, one in ipairs(settlements) do
    local key = leased(p, one[3], one[4])
    if not key or seen[key] then return { 'stale_receipt', which - 1 } end
    seen[key] = true
  end
  return nil
end

local ENDS = { nack = 'failed', release = 'released', untaken = 'released', lost = 'lost' }

-- Ends a lease as whoever has it says.
local function end_lease(p, key, m, how, delay_ms, report)
  if how == 'ack' then return conclude(p, key, m, 'completed', 'acked', report) end
  if how == 'untaken' then
    -- Nobody has seen it. For how long it waited is counted now, and not again.
    local level = lane_of(p, m[PRIORITY])
    count(p, level, 'delivered', -1)
    if m[COUNT] > 1 then count(p, level, 'redelivered', -1) end
  end
  local why, problem
  if ENDS[how] then
    why, problem = put_back(p, key, m, ENDS[how], delay_ms, report)
  else
    why = m[WORK] and m[WORK][3] and 'cancelled' or (how == 'timeout' and how or 'rejected')
  end
  if why then finish(p, key, m, why, report, problem) end
end

-- Ends one lease, with a report. Arguments: how, a delay in ms (or empty), the sequence and the number of the lease, an exit code, an error, the end of the output: these as
-- `=` and the text, or empty. Answers 1, or 0 where it does not hold any more.
local function finish_lease(keys, args)
  return once(keys, args, function(p)
    local key, m = leased(p, tonumber(args[6]), tonumber(args[7]))
    if not key then return { 0 } end
    end_lease(p, key, m, args[4], tonumber(args[5]), RECORDS.told(args, 8))
    return { 1 }
  end)
end

-- Ends leases, each for itself. Arguments: how (`ack`, `nack`, `release`, `reject`, `timeout`, `lost`, `untaken`), a delay in ms (or empty), then the sequence and the number of each lease.
-- Answers for each 1, or 0 where it does not hold any more.
local function settle_leases(keys, args)
  return once(keys, args, function(p)
    local how, delay_ms = args[4], tonumber(args[5])
    local all = {}
    for at = 6, #args, 2 do all[#all + 1] = key_of(tonumber(args[at])) end
    fetch(p, all)
    local what = {}
    for at = 6, #args, 2 do
      local key, m = leased(p, tonumber(args[at]), tonumber(args[at + 1]))
      what[#what + 1] = key and 1 or 0
      if key then end_lease(p, key, m, how, delay_ms) end
    end
    return what
  end)
end

-- Publishes all, then settles all: the number of a lease is where `number` says.
local function do_parts(p, messages, settlements, number, tells)
  local what, at_once = {}, {}
  local are_taken = taken_before(p, messages)
  for at, m in ipairs(messages) do
    if are_taken[at] then
      what[at] = {}
    else
      local there = pending(p, m.id)
      local key = there or publish(p, m)
      if not there and (m.ttl_ms == 0 or p.settings.evict_at_once or (p.settings.expire_at_once and not m.base_ms)) then at_once[#at_once + 1] = key end
      note_taken(p, m.origin)
      what[at] = told(p, key, tells, there)
    end
  end
  for _, one in ipairs(settlements) do
    local key, m = leased(p, one[3], one[number])
    if key then end_lease(p, key, m, one[1], one[2] or nil) end
  end
  end_at_once(p, at_once)
  return what
end

-- Publishes and settles in this place, all or none. Arguments: whether to tell positions, the parts. Answers as `admit`, of all or none; of a settlement that cannot be done,
-- `[refusal, which from 0]`.
local function transact(keys, args)
  return once(keys, args, function(p)
    local messages, settlements = read_parts(args, 5)
    local what = refused(p, messages, new_tally()) or stale(p, settlements)
    what = what or do_parts(p, messages, settlements, 4, args[4] == '1')
    return what
  end)
end

-- Keeps a part of a transaction. Arguments: its name, for how long in ms, the parts. Answers nothing, or `[refusal, which from 0]`.
local function prepare(keys, args)
  return once(keys, args, function(p)
    local messages, settlements = read_parts(args, 6)
    local tally = new_tally()
    local what = refused(p, messages, tally) or stale(p, settlements) or {}
    if #what == 0 then
      for _, one in ipairs(settlements) do
        local key, m = leased(p, one[3], one[4])
        detach(p, key, m)
        one[5] = next_lease(p)
        m[LEASE], m[PREPARED] = one[5], args[4]
        attach(p, key, m)
      end
      p.waiting, p.bytes = p.waiting + tally.messages, p.bytes + tally.bytes
      local due = p.now + tonumber(args[5])
      redis.call('HSET', p.base .. ':v', args[4], cmsgpack.pack({ messages, settlements, tally.messages, tally.bytes, due }))
      put(p, 'prepared', args[4], due)
    end
    return what
  end)
end

-- What was prepared, without what was kept for it.
local function take_prepared(p, name)
  local packed = redis.call('HGET', p.base .. ':v', name)
  if not packed then return nil end
  local prepared = cmsgpack.unpack(packed)
  redis.call('HDEL', p.base .. ':v', name)
  put(p, 'prepared', name, false)
  p.waiting, p.bytes = p.waiting - prepared[3], p.bytes - prepared[4]
  return prepared[1], prepared[2]
end

-- Does what was prepared. Arguments: the name, whether to tell positions. Answers as `admit`, of all; nothing where it was done before, or never prepared.
local function commit(keys, args)
  return once(keys, args, function(p)
    local messages, settlements = take_prepared(p, args[4])
    return messages and do_parts(p, messages, settlements, 5, args[5] == '1') or {}
  end)
end

-- Does nothing of what was prepared: leases are what they were. Arguments: the name.
local function abort(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local messages, settlements = take_prepared(p, args[4])
  if messages then
    for _, one in ipairs(settlements) do
      local key, m = leased(p, one[3], one[5])
      if key then
        detach(p, key, m)
        m[LEASE], m[PREPARED] = one[4], false
        attach(p, key, m)
        if m[HOLDER] and not redis.call('ZSCORE', p.base .. ':q', m[HOLDER]) then
          local why = put_back(p, key, m, 'lost')
          if why then finish(p, key, m, why) end
        end
      end
    end
    -- What was over meanwhile is over.
    sync(p)
    tick(p)
  end
  return answer(p, {})
end

-- Transactions whose end is overdue. Answers their names.
local function overdue(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local ended = answer(p, false)
  ended[5] = redis.call('ZRANGE', p.base .. ':vt', '-inf', text(p.now), 'BYSCORE')
  return ended
end

-- Admits a message that is over at once if nobody takes it, and leases what goes next to somebody who takes one message: it, or what goes before it. Arguments: how long the lease lasts, ms (0: no end), the holder with
-- whom it ends (or empty), how long that is believed to be there, ms, the least level (or empty), then the message. Answers what came of it, and what was leased.
local function offer(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local done, got = before(p), {}
  if done then
    for _, one in ipairs(done[2]) do
      local m = message(p, one[1])
      if m and m[STATE] == LEASED and m[LEASE] == one[2] then got[#got + 1] = one[1] end
    end
  else
    local holder = args[5] ~= '' and args[5] or false
    local want = { max = 1, bytes = 0, ms = tonumber(args[4]), holder = holder, floor = tonumber(args[7]), last = '', one = false, except = {} }
    local taken = take(p, read_message(args, 8), false, function()
      got = lease_all(p, want)
      if holder and #got > 0 then put(p, 'alive', holder, p.now + tonumber(args[6])) end
    end)
    see_off(p)
    local kept = {}
    for i, key in ipairs(got) do kept[i] = { key, message(p, key)[LEASE] } end
    done = { taken, kept }
    remember(p, done)
  end
  return answer(p, { done[1], as_leased(p, got) })
end

redis.register_function('ot_offer', offer)
redis.register_function('ot_transact', transact)
redis.register_function('ot_prepare', prepare)
-- The same where nothing is published: then it frees memory, and needs none that is not there.
register_always('ot_settle_all', transact)
register_always('ot_prepare_settlements', prepare)
register_always('ot_commit', commit)
register_always('ot_abort', abort)
register_always('ot_overdue', overdue)
register_always('ot_settle', settle_leases)
register_always('ot_finish', finish_lease)
