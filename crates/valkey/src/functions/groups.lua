-- Messages by key, where the settings speak of keys: how many of a key are out, how quickly they go, whose turn it is.
--
-- A group is what has one key. Beside the order of lanes there is, for each lane, what may go now: of each group the oldest message. Where keys take turns the group goes
-- first that has the fewest messages out for each of its weight, rounded down, then the one whose turn it is (start-time fair queueing: Goyal, Vin and Cheng, 1996). What has no key is
-- never held back; it is one group among those that take turns.
--
--   :f  what may go now       sorted set, equal scores, members are level inverted, messages out, turns had, sequence
--   :w  what waits            sorted set, equal scores, members are level inverted, key, a zero, sequence
--   :y  groups by key         hash: messages out, tokens, when it had so many, when it is woken, of each lane the level, the count, the turns had, the oldest; how often settings
--                             changed; and the turns of the messages out by the weights they say
--   :p  how far the group of a lane is that is furthest, by level; and, with a `t` before the level, where the turn began of what went last
--   :z  when groups are woken sorted set
--
-- Where other settings of keys hold than before, each group goes by those that it was written under until it is read: then, or when all are gone through a few at a time, it goes by those of now.
--   p.ruled  how often that was, as a group says of itself
--   p.rules  while groups are gone through: how far that is, and the settings from before by that number

local group, is_held_group, enter_group, leave_group, lend_group, charge_group, ring_groups, head_of_groups, next_of_groups, save_groups, regroup, rule_groups

-- Only these are used elsewhere: a chunk of Lua has no more than 200 local names.
do

local function most_tokens(rate) return rate.messages * rate.per_ms end

local function new_tokens(p, key)
  local rate = p.keys.rate
  if not rate or key == '' then return false end
  return most_tokens(rate)
end

-- What a group of weight 1 has had more after each message.
local STRIDE = 1048576

local follow_rules

function group(p, key)
  local g = p.groups[key]
  if g then return g end
  local packed = redis.call('HGET', p.base .. ':y', key)
  if packed then
    local got = cmsgpack.unpack(packed)
    g = { out = got[1], tokens = got[2], filled = got[3], wake = got[4], lanes = {}, ruled = got[6] or 0, own = got[7] or got[1] * STRIDE }
    for _, lane in ipairs(got[5]) do g.lanes[lane[1]] = { count = lane[2], pass = lane[3], head = lane[4] } end
  else
    g = { out = 0, tokens = new_tokens(p, key), filled = 0, wake = false, lanes = {}, own = 0 }
  end
  p.groups[key] = g
  if p.rules and g.ruled and g.ruled ~= p.ruled then follow_rules(p, key, g) end
  return g
end

function is_held_group(p, key, g)
  if key == '' then return false end
  local limit, rate = p.keys.limit, p.keys.rate
  return (limit > 0 and g.out >= limit) or (g.tokens and g.tokens < rate.per_ms) or false
end

-- How far each message takes a group whose key has a weight in these settings.
local function set_stride(keys, key)
  local weight = keys.weights and keys.weights[key]
  return weight and math.ceil(STRIDE / weight)
end

-- How far a message takes its group by the weight that its publisher gave the key.
local function own_stride(m) return math.ceil(STRIDE / (m[KEY_WEIGHT] or 1)) end

-- The messages of a group that are out, for each of its weight, rounded down; in strides, as members of the set have said it before there were weights.
local function share_of(keys, key, g)
  local stride = set_stride(keys, key)
  local out = stride and g.out * stride or g.own
  return out - out % STRIDE
end

local function offer(p, key, g, score)
  if is_held_group(p, key, g) then return end
  for level, lane in pairs(g.lanes) do
    local out, pass = 0, 0
    if p.keys.fair then out, pass = share_of(p.keys, key, g), lane.pass end
    put(p, 'offers', rank_of(level) .. key_of(out) .. key_of(pass) .. lane.head, score)
  end
end

local function furthest(p, level)
  if p.passes[level] == nil then p.passes[level] = tonumber(redis.call('HGET', p.base .. ':p', text(level)) or 0) end
  return p.passes[level]
end

local function began(p, level)
  if p.times[level] == nil then p.times[level] = tonumber(redis.call('HGET', p.base .. ':p', 't' .. text(level)) or 0) end
  return p.times[level]
end

local function fill_group(p, g)
  local rate = p.keys.rate
  if not g.tokens or not rate then return end
  g.tokens = math.min(most_tokens(rate), g.tokens + math.max(0, p.now - g.filled) * rate.messages)
  g.filled = math.max(g.filled, p.now)
end

-- A group that was changed is woken when it has a token, or is full; and goes when nothing is to be known of it.
local function settle_down(p, key, g)
  local wake, rate = false, p.keys.rate
  if g.tokens and rate then
    local missing = rate.per_ms - g.tokens
    if missing <= 0 then missing = most_tokens(rate) - g.tokens end
    if missing > 0 then wake = g.filled + math.ceil(missing / rate.messages) end
  end
  if wake ~= g.wake then
    g.wake = wake
    put(p, 'wakes', key, wake or false)
  end
  g.is_over = g.out == 0 and next(g.lanes) == nil and not wake
end

-- A group goes by the settings of now.
function follow_rules(p, key, g)
  local rules = p.rules.before
  for level, lane in pairs(g.lanes) do
    local out, pass = 0, 0
    local was = rules[text(g.ruled)]
    if was.fair then out, pass = share_of(was, key, g), lane.pass end
    put(p, 'offers', rank_of(level) .. key_of(out) .. key_of(pass) .. lane.head, false)
  end
  for step = g.ruled + 1, p.ruled do
    local was, is = rules[text(step - 1)].rate, step == p.ruled and p.keys.rate or step < p.ruled and rules[text(step)].rate
    if g.tokens and was and is then
      g.tokens = math.min(most_tokens(is), math.floor(g.tokens * is.per_ms / was.per_ms))
    else
      g.tokens, g.filled = is and key ~= '' and most_tokens(is) or false, 0
    end
  end
  g.wake = false
  offer(p, key, g, 0)
  settle_down(p, key, g)
end

local function change_group(p, key, change)
  local g = group(p, key)
  offer(p, key, g, false)
  change(g)
  offer(p, key, g, 0)
  settle_down(p, key, g)
end

local function waiting_prefix(level, key) return rank_of(level) .. key .. ZERO end

-- A message is ready.
function enter_group(p, m, level, at)
  local key = m[KEY] or ''
  put(p, 'waiting', waiting_prefix(level, key) .. at, 0)
  local lane = group(p, key).lanes[level]
  if lane and lane.head < at then
    -- Behind the one that is offered.
    lane.count = lane.count + 1
    return
  end
  -- Who has just come stands where the furthest is: its turn comes when the others have had theirs.
  local pass = furthest(p, level)
  change_group(p, key, function(g)
    local there = g.lanes[level] or { count = 0, pass = pass, head = at }
    g.lanes[level] = there
    there.count = there.count + 1
    if at < there.head then there.head = at end
  end)
end

-- It is ready no more.
function leave_group(p, m, level, at)
  local key = m[KEY] or ''
  local prefix = waiting_prefix(level, key)
  put(p, 'waiting', prefix .. at, false)
  change_group(p, key, function(g)
    local lane = g.lanes[level]
    if not lane then return end
    lane.count = lane.count - 1
    if lane.count == 0 then
      g.lanes[level] = nil
    elseif lane.head == at then
      sync(p)
      local nearest = redis.call('ZRANGE', p.base .. ':w', '(' .. prefix .. at, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
      lane.head = string.sub(nearest, -8)
    end
  end)
end

function lend_group(p, m, by)
  change_group(p, m[KEY] or '', function(g) g.out, g.own = g.out + by, g.own + by * own_stride(m) end)
end

-- A ready message of a lane is about to go.
function charge_group(p, m, level)
  if not p.keys or not (p.keys.rate or p.keys.fair) then return end
  local pass, time = 0, began(p, level)
  change_group(p, m[KEY] or '', function(g)
    if g.tokens then
      fill_group(p, g)
      g.tokens = math.max(0, g.tokens - p.keys.rate.per_ms)
    end
    local lane = g.lanes[level]
    if lane then
      -- Turns that it let pass, with more out than others or held back, are not made up for.
      time = math.max(time, lane.pass)
      lane.pass = time + (set_stride(p.keys, m[KEY] or '') or own_stride(m))
      pass = lane.pass
    end
  end)
  p.passes[level], p.times[level] = math.max(furthest(p, level), pass), time
end

-- Groups may go that had no token, so many in one call; the rest is for the next.
function ring_groups(p)
  if not p.keys or not p.keys.rate then return end
  sync(p)
  local due = redis.call('ZRANGE', p.base .. ':z', '-inf', text(p.now), 'BYSCORE', 'LIMIT', 0, DUE_MAX)
  for _, key in ipairs(due) do
    change_group(p, key, function(g) fill_group(p, g) end)
  end
  p.rings_on = #due == DUE_MAX
end

-- The message of a lane that goes first, as far as groups are known to go by the settings of now.
function head_of_groups(p, level)
  sync(p)
  local member = redis.call('ZRANGE', p.base .. ':f', '[' .. rank_of(level), '(' .. end_of(level), 'BYLEX', 'LIMIT', 0, 1)[1]
  return member and rank_of(level) .. string.sub(member, -8)
end

-- The message of a lane that goes first, if any may go.
function next_of_groups(p, level)
  for _ = 0, DUE_MAX do
    local head = head_of_groups(p, level)
    if not head or not p.rules then return head end
    local key = message(p, key_in(head))[KEY] or ''
    if p.groups[key] then return head end
    -- Read for the first time in this call, it may be held, or have its turn later.
    group(p, key)
  end
  return nil
end

function save_groups(p)
  local changed = {}
  for key, g in pairs(p.groups) do
    local lanes = {}
    for level, lane in pairs(g.lanes) do lanes[#lanes + 1] = { level, lane.count, lane.pass, lane.head } end
    changed[key] = not g.is_over and cmsgpack.pack({ g.out, g.tokens, g.filled, g.wake, lanes, p.ruled, g.own }) or false
  end
  save_hash(p, ':y', changed)
  for level, pass in pairs(p.passes) do
    if pass > 0 then redis.call('HSET', p.base .. ':p', text(level), text(pass)) end
  end
  for level, time in pairs(p.times) do
    if time > 0 then redis.call('HSET', p.base .. ':p', 't' .. text(level), text(time)) end
  end
end

local GROUP_KEYS = { ':f', ':w', ':y', ':p', ':z' }

-- Other settings of keys hold from now on, or none. What is there when they are the first comes into groups as it comes into other lanes.
function regroup(p, keys)
  local was, before = p.keys, p.rules and p.rules.before or {}
  p.keys, p.rules = keys, nil
  if was and keys then
    before[text(p.ruled)] = was
    p.ruled, p.rules = p.ruled + 1, { before = before, cursor = '0' }
    redis.call('UNLINK', p.base .. ':z')
    redis.call('HSET', p.base .. ':c', 'ruled', text(p.ruled))
  elseif was then
    p.groups, p.passes, p.times = {}, {}, {}
    for _, name in ipairs(GROUP_KEYS) do redis.call('UNLINK', p.base .. name) end
    redis.call('HDEL', p.base .. ':c', 'rules')
  end
end

-- Goes on with groups that may yet go by settings from before.
function rule_groups(p)
  local most = LEFT.room()
  if most == 0 then return end
  local page = redis.call('HSCAN', p.base .. ':y', p.rules.cursor, 'COUNT', most)
  for at = 1, #page[2], 2 do group(p, page[2][at]) end
  p.rules.cursor = page[1]
  if page[1] == '0' then
    p.rules, p.shows_again = nil, true
    redis.call('HDEL', p.base .. ':c', 'rules')
  end
end

end
