-- What has left its queue, on its way: whoever is told that there is something asks for it, has the places take it to which it goes, and says what became of it. Done twice, by two or
-- after a fall, nothing more comes of it: each place remembers what it took.

-- So many, those that left first. Arguments: how many. Answers of each `[sequence, message, content, number, why it died or nothing, when, record or nothing]`.
local function leaving(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local ended = answer(p, false)
  ended[5] = {}
  local numbers = redis.call('ZRANGE', p.base .. ':el', 0, math.min(tonumber(args[4]), 4000) - 1)
  if #numbers == 0 then return ended end
  local all, contents = redis.call('HMGET', p.base .. ':e', unpack(numbers)), {}
  for at, packed in ipairs(all) do
    all[at] = cmsgpack.unpack(packed)
    contents[at] = all[at][1]
  end
  contents = redis.call('HMGET', p.base .. ':b', unpack(contents))
  for at, one in ipairs(all) do
    ended[5][at] = { seq_of(one[1]), one[2], contents[at], seq_of(numbers[at]), one[3], one[4], one[5] }
  end
  return ended
end

-- What goes home did not die.
local function has_died(why) return why and why ~= 'home' end

-- What became of it. `moved`: it is elsewhere; `gone`: nowhere; `stays`: nothing takes it, so it is a dead letter here, or ready as it was before it was sent home. What ended well is counted already.
local OUTCOMES = {}

function OUTCOMES.moved(p, _, m, why)
  local level = lane_of(p, m[PRIORITY])
  count(p, level, 'moved', why and 1 or 0)
  count(p, level, 'dead_lettered', has_died(why) and 1 or 0)
end

function OUTCOMES.gone(p, _, m, why)
  if has_died(why) then count(p, lane_of(p, m[PRIORITY]), SETTLED[GONE_BY[why]], 1) end
end

function OUTCOMES.stays(p, key, m, why, record)
  if not why then return end
  if record and record[5] then RECORDS.note(m, { record[1], record[5], record[6], record[8], record[9], record[10] }) end
  if has_died(why) then count(p, lane_of(p, m[PRIORITY]), 'dead_lettered', 1) else m[STATE] = READY end
  p.messages[key] = m
  p.gone[key], p.emptied[key] = nil, nil
  index(p, key, m)
  attach(p, key, m)
end

-- Says what became of it. Arguments: of each its number, and `moved`, `gone` or `stays`. What is said again changes nothing.
local function left(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local heard = {}
  for at = 4, #args, 2 do
    local number = key_of(tonumber(args[at]))
    local packed = not heard[number] and redis.call('HGET', p.base .. ':e', number)
    if packed then
      local one = cmsgpack.unpack(packed)
      heard[number], p.has_heard = true, true
      p.leaving = p.leaving - 1
      redis.call('HDEL', p.base .. ':e', number)
      put(p, 'left', number, false)
      p.emptied[one[1]] = true
      OUTCOMES[args[at + 1]](p, one[1], one[2], one[3], one[5])
    end
  end
  return answer(p, {})
end

register_always('ot_leaving', leaving)
register_always('ot_left', left)
