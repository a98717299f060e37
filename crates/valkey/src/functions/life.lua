-- How a message comes back, and how it ends.

-- Gone. Answers nothing, as whatever ends a message does unless more is to be done with it.
local SETTLED = { acked = 'settled', expired = 'expired', evicted = 'evicted', removed = 'removed', replaced = 'removed', dropped = 'removed' }

local function settle(p, key, m, how)
  count(p, lane_of(p, m[PRIORITY]), SETTLED[how], 1)
  take_out(p, key, m)
end

-- A death: reason, queue, lane, when first, when last, how often, deliveries the last time, the way it had come, the time to live it lost. A way that is
-- false is the one that its content says.
-- All deaths: where the first ever is, from 1; the list, the newest first; the way to where it died last, the way to where it is.
local function another(p, m, reason)
  local known = m[DEATHS]
  local list, first, way = {}, 1, false
  if known then
    way = known[4]
    first = known[1] + 1
    for i, death in ipairs(known[2]) do list[i] = death end
  end
  local lane = name_of(p, lane_of(p, m[PRIORITY]))
  local death = { reason, p.settings.name, lane, p.now, p.now, 1, m[COUNT], way, not known }
  for at, old in ipairs(list) do
    if old[1] == reason and old[2] == p.settings.name then
      table.remove(list, at)
      death = { reason, old[2], lane, old[4], p.now, old[6] + 1, m[COUNT], old[8], old[9] }
      local was = known[1]
      if at < was then first = was elseif at == was then first = 1 else first = was + 1 end
      break
    end
  end
  table.insert(list, 1, death)
  -- Beyond 32 the oldest goes, but never the first.
  if #list > 32 then
    if first == #list then
      table.remove(list, #list - 1)
      first = first - 1
    else
      table.remove(list)
    end
  end
  return { first, list, way, way }
end

-- Out of the lanes, dead.
local function lay_out(p, key, m, deaths)
  forget_value(p, key, m)
  detach(p, key, m)
  m[STATE], m[AT], m[LEASE], m[HOLDER], m[WORK], m[OUTDATED], m[PREPARED] = DEAD, NEVER, 0, false, false, false, false
  RECORDS.progress(m, false)
  if deaths then m[DEATHS] = deaths end
  attach(p, key, m)
end

-- The end of one that did not die: with a history it goes there, else it is gone.
local function conclude(p, key, m, ending, how, report)
  if not p.settings.history then return settle(p, key, m, how) end
  count(p, lane_of(p, m[PRIORITY]), SETTLED[how], 1)
  leave(p, key, m, false, RECORDS.of(p, m, ending, report), p.leavers)
end

local GONE_BY = { expired = 'expired', maxlen = 'evicted', rejected = 'dropped', delivery_limit = 'dropped', timeout = 'dropped' }

-- Where a message goes that dies of this: `keep`, `drop`, or `leave`.
local function fate(s, reason)
  if reason == 'expired' and not s.dead_letter_expired then return 'drop' end
  if reason == 'maxlen' and not s.dead_letter_evicted and s.overflow ~= 'reject_dead_letter' then return 'drop' end
  return s.dead_letter
end

-- It may not go on. `problem` is what is said of it where the report says nothing; by default what its reason says.
local function die(p, key, m, reason, report, list, problem)
  local s = p.settings
  problem = problem or RECORDS.errors[reason]
  local to = fate(s, reason)
  if s.history or to == 'leave' then
    local record
    if s.history then
      record = RECORDS.of(p, m, RECORDS.endings[reason], report)
      record[9] = record[9] or problem
    end
    -- How it is counted is known when it is known what became of it.
    m[DEATHS] = another(p, m, reason)
    if not record then RECORDS.attempt(p, m, RECORDS.endings[reason], report, problem) end
    return leave(p, key, m, reason, record, list or p.leavers)
  end
  if to == 'drop' then return settle(p, key, m, GONE_BY[reason]) end
  count(p, lane_of(p, m[PRIORITY]), 'dead_lettered', 1)
  RECORDS.attempt(p, m, RECORDS.endings[reason], report, problem)
  lay_out(p, key, m, another(p, m, reason))
end

-- Answers why it dies, if it does.
local function expire(p, key, m)
  if p.settings.evict_at_once and is_at_once(m) then
    if p.settings.history or fate(p.settings, 'maxlen') ~= 'drop' then return 'maxlen' end
    settle(p, key, m, 'evicted')
    return nil
  end
  if p.settings.history or fate(p.settings, 'expired') ~= 'drop' then return 'expired' end
  settle(p, key, m, 'expired')
  return nil
end

-- Ready, or delayed until then.
local function wait(p, key, m, due)
  detach(p, key, m)
  m[HOLDER], m[WORK], m[LEASE], m[PREPARED] = false, false, 0, false
  RECORDS.progress(m, false)
  m[STATE], m[AT] = due and DELAYED or READY, due or NEVER
  attach(p, key, m)
end

local function backoff_ms(p, failures)
  local b = p.settings.backoff
  local ms = b.initial_ms
  for _ = 2, failures do
    if ms >= b.max_ms or ms == 0 then break end
    ms = ms * b.multiplier
  end
  return math.min(ms, b.max_ms)
end

-- Ends a lease without settling. A failure waits `delay_ms`, or the queue's backoff where that is nil; a release waits for nothing and is no delivery. Answers how the message
-- ends instead, if it does, and what is said of that where nobody says anything else.
local function put_back(p, key, m, why, delay_ms, report)
  if m[WORK] and m[WORK][3] then return 'cancelled' end
  if is_over(m[EXPIRES], p.now) then return expire(p, key, m) end
  if m[OUTDATED] then
    settle(p, key, m, 'replaced')
    return nil
  end
  local limit = p.settings.delivery_limit
  if why ~= 'released' and limit > 0 and m[COUNT] >= limit then return 'delivery_limit', RECORDS.returns[why][2] end
  local ms = 0
  if why == 'released' then
    m[COUNT] = math.max(m[COUNT] - 1, 0)
  else
    ms = delay_ms or backoff_ms(p, m[COUNT])
    RECORDS.attempt(p, m, RECORDS.returns[why][1], report, RECORDS.returns[why][2])
  end
  wait(p, key, m, ms > 0 and p.now + ms or nil)
  return nil
end

-- Does with a message what its end says.
local function finish(p, key, m, ending, report, problem)
  if ending == 'cancelled' then return conclude(p, key, m, 'cancelled', 'removed', report) end
  die(p, key, m, ending, report, nil, problem)
end

-- Lets time pass: leases end, what is delayed comes due, what expires is over.
local function tick(p)
  p.alarm = first_of(p, 'alarms')
  if not is_over(p.alarm, p.now) then return end
  local due = redis.call('ZRANGE', p.base .. ':t', '-inf', text(p.now), 'BYSCORE', 'LIMIT', 0, DUE_MAX)
  if #due == 0 then return end
  fetch(p, due)
  local ending = {}
  for _, key in ipairs(due) do
    local m = message(p, key)
    local state, why, problem = m[STATE], nil, nil
    if state == LEASED and m[WORK] and is_over(m[WORK][2], p.now) then
      why = 'timeout'
    elseif state == LEASED then
      why, problem = put_back(p, key, m, 'expired')
    elseif is_over(m[EXPIRES], p.now) then
      why = expire(p, key, m)
    elseif state == DELAYED then
      wait(p, key, m)
    end
    if why then ending[#ending + 1] = { key, why, problem } end
  end
  for _, one in ipairs(ending) do
    local m = message(p, one[1])
    if m then finish(p, one[1], m, one[2], nil, one[3]) end
  end
end

-- What is out to a holder.
local function held_by(p, holder)
  local held = redis.call('ZRANGE', p.base .. ':h', '[' .. holder .. ZERO, '(' .. holder .. '\1', 'BYLEX')
  for i, member in ipairs(held) do held[i] = string.sub(member, -8) end
  return held
end

-- Of these goes back what is out to this holder by a lease that was given by then, in the order in which it was given. Answers how many.
local function give_back(p, holder, keys, last)
  local lost = {}
  fetch(p, keys)
  for _, key in ipairs(keys) do
    local m = message(p, key)
    -- What a transaction is to settle is for that to say.
    if m and m[STATE] == LEASED and m[HOLDER] == holder and m[LEASE] <= last and not m[PREPARED] then
      lost[#lost + 1] = { key, m }
    end
  end
  table.sort(lost, function(one, other) return one[2][LEASE] < other[2][LEASE] end)
  for _, one in ipairs(lost) do
    local key, m = one[1], one[2]
    local why, problem = put_back(p, key, m, 'lost')
    if why then finish(p, key, m, why, nil, problem) end
  end
  return #lost
end

local bury

-- Only this is used elsewhere: a chunk of Lua has no more than 200 local names.
do

-- Some of what is out to a holder and may go back: what a transaction is to settle may not.
local function some_held(p, holder, most)
  local some, from, to = {}, '[' .. holder .. ZERO, '(' .. holder .. '\1'
  while true do
    local members = redis.call('ZRANGE', p.base .. ':h', from, to, 'BYLEX', 'LIMIT', 0, most)
    local keys = {}
    for at, member in ipairs(members) do keys[at] = string.sub(member, -8) end
    fetch(p, keys)
    for _, key in ipairs(keys) do
      local m = message(p, key)
      if m and m[HOLDER] == holder and not m[PREPARED] then some[#some + 1] = key end
      if #some == most then return some end
    end
    if #members < most then return some end
    from = '(' .. members[#members]
  end
end

-- Whoever is gone consumes no more, and holds nothing: what is out to it goes back, so many messages in one call, and what is left in those that follow. Answers how many went.
function bury(p, holder)
  ATTENDANCE.strike_off(p, holder)
  local some = some_held(p, holder, DUE_MAX)
  put(p, 'alive', holder, #some == DUE_MAX and p.now)
  return give_back(p, holder, some, p.lease)
end

end

-- Holders that have given no sign for too long are gone.
local function bury_holders(p)
  p.sign = first_of(p, 'alive')
  if not is_over(p.sign, p.now) then return end
  local left = DUE_MAX
  for _, holder in ipairs(redis.call('ZRANGE', p.base .. ':q', '-inf', text(p.now), 'BYSCORE', 'LIMIT', 0, DUE_MAX)) do
    left = left - bury(p, holder)
    if left <= 0 then return end
  end
end

local function is_full_of(p, messages, bytes)
  local s = p.settings
  return (s.max_length > 0 and messages > s.max_length) or (s.max_bytes > 0 and bytes > s.max_bytes)
end

-- It holds more than it may, and the calls that follow have it come within its limits.
local function be_over(p)
  p.over = '1'
  redis.call('HSET', p.base .. ':c', 'over', '1')
end

-- Comes within its limits: the least urgent messages go, of them the oldest first; so many in one call, the rest in those that follow.
local function come_within(p)
  local left = 1000
  while p.settings.overflow == 'evict' and is_full_of(p, p.waiting, p.bytes) do
    sync(p)
    local last = redis.call('ZRANGE', p.base .. ':o', -1, -1)[1]
    if not last then break end
    if left == 0 then return end
    local oldest = redis.call('ZRANGE', p.base .. ':o', '[' .. rank_in(last), '+', 'BYLEX', 'LIMIT', 0, left)
    local all = {}
    for at, member in ipairs(oldest) do all[at] = key_in(member) end
    fetch(p, all)
    for _, key in ipairs(all) do
      if not is_full_of(p, p.waiting, p.bytes) then break end
      left = left - 1
      die(p, key, message(p, key), 'maxlen', nil, p.payers)
    end
  end
  p.over = false
  redis.call('HDEL', p.base .. ':c', 'over')
end

-- The place of a call, at its time.
local function begin(keys, args)
  local p, instead = open(keys, args)
  if not p then return nil, instead end
  tick(p)
  if p.left then LEFT.go_on(p) end
  if p.rules then rule_groups(p) end
  -- Which messages are the least urgent is known when all are in their lanes.
  if p.over and not p.left then come_within(p) end
  bury_holders(p)
  ring_groups(p)
  return p
end

-- Does something once, and answers what came of it; asked again, as it was answered then.
local function once(keys, args, does)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local what = before(p)
  if not what then
    what = does(p)
    remember(p, what)
  end
  return answer(p, what)
end
