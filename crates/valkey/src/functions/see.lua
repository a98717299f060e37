-- Seeing a place.

-- Every gauge and counter of its lanes, name by name; of each lane with something ready, its level and when its oldest was published; the first sequence there and
-- the last one given; how many consumers other processes have; when anything was last counted, 0 where that is not known.
local function view(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local ended = answer(p, false)
  local oldest, first = {}, nil
  local function see(key) if key and (not first or key < first) then first = key end end
  for _, level in ipairs(ready_levels(p)) do
    local member = redis.call('ZRANGE', p.base .. ':o', '[' .. rank_of(level), '+', 'BYLEX', 'LIMIT', 0, 1)[1]
    oldest[#oldest + 1] = { LEFT.outside(p, level), message(p, key_in(member))[SINCE] }
    see(key_in(member))
  end
  for _, set in ipairs({ 'delayed', 'leased', 'dead' }) do see(redis.call('ZRANGE', p.base .. NAMES[set], 0, 0)[1]) end
  local gauges = redis.call('HGETALL', p.base .. ':g')
  if p.shift > 0 then LEFT.tell_gauges(p, gauges) end
  ended[5] = { gauges, oldest, first and seq_of(first) or p.seq + 1, p.seq, ATTENDANCE.of_others(p, p.caller), tonumber(redis.call('HGET', p.base .. ':c', 'active') or 0) }
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
        local rank, behind = rank_of(level), end_of(level)
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

-- Most messages that one call looks at, and most bytes of what they say, but for the first. Where there are many lanes the next message of each is compared: so many comparisons.
local LOOKS_MAX, LOOK_BYTES_MAX, COMPARISONS_MAX = 128, 1048576, 4096
-- So many sequences of a list are read at once, and of all lists together about so many.
local FEW, FEW_OF_ALL = 32, 512

-- The sequences of a set of the place, or of the lane of a level, after this one or before it, a few at a time.
local function list_of(p, which, after, is_newest, few)
  local level = type(which) == 'number' and which
  local key, front = p.base .. NAMES[level and 'order' or which], level and rank_of(level) or ''
  local from, to = '-', '+'
  if level then from, to = '[' .. front, '(' .. end_of(level) end
  if after ~= '' and is_newest then to = '(' .. front .. after end
  if after ~= '' and not is_newest then from = '(' .. front .. after end
  local list = { members = {}, at = 1, is_over = false }
  function list.head()
    if list.at > #list.members and not list.is_over then
      if is_newest then
        list.members = redis.call('ZRANGE', key, to, from, 'BYLEX', 'REV', 'LIMIT', 0, few)
      else
        list.members = redis.call('ZRANGE', key, from, to, 'BYLEX', 'LIMIT', 0, few)
      end
      list.at, list.is_over = 1, #list.members < few
      local last = list.members[#list.members]
      if last and is_newest then to = '(' .. last elseif last then from = '(' .. last end
    end
    local member = list.members[list.at]
    return member and string.sub(member, -8)
  end
  return list
end

-- The next sequences of all these lists by their order, no more than so many; and whether there are more.
local function merged(lists, most, is_newest)
  local heads, all = {}, {}
  for at, list in ipairs(lists) do heads[at] = list.head() or false end
  while true do
    local best, first
    for at = 1, #heads do
      local head = heads[at]
      -- No two lists have the same message.
      if head and (not first or (head < first) ~= is_newest) then best, first = at, head end
    end
    if not best then return all, false end
    if #all >= most then return all, true end
    all[#all + 1] = first
    lists[best].at = lists[best].at + 1
    heads[best] = lists[best].head() or false
  end
end

-- Looks at messages by sequence, at no more than so many, whatever there is. Arguments: `published` or `newest`, where the call before ended (a sequence, or empty), most messages, whether with what they say
-- (1 or 0), then `ready`, `delayed`, `leased`, `dead`, or the level of a lane for what is ready there, one or several. Answers where to go on, or false where nothing is left, and `[sequence, message, content]` of each.
local function look(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local ended = answer(p, false)
  local is_newest, after = args[4] == 'newest', args[5] ~= '' and key_of(tonumber(args[5])) or ''
  local lists = {}
  for at = 8, #args do
    local level = tonumber(args[at])
    for _, which in ipairs(args[at] == 'ready' and ready_levels(p) or { level and LEFT.inside(p, level) or args[at] }) do lists[#lists + 1] = which end
  end
  local most = math.min(tonumber(args[6]), LOOKS_MAX, math.floor(COMPARISONS_MAX / math.max(1, #lists)))
  local few = math.min(FEW, math.max(1, math.floor(FEW_OF_ALL / math.max(1, #lists))))
  for at, which in ipairs(lists) do lists[at] = list_of(p, which, after, is_newest, few) end
  local all, is_more = merged(lists, math.max(1, most), is_newest)
  local what, bytes, last = {}, 0, false
  fetch(p, all)
  for _, key in ipairs(all) do
    local m = message(p, key)
    if args[7] == '1' then bytes = bytes + m[BYTES] end
    if last and bytes > LOOK_BYTES_MAX then
      is_more = true
      break
    end
    last = key
    what[#what + 1] = { seq_of(key), m, args[7] == '1' and redis.call('HGET', p.base .. ':b', key) or false }
  end
  ended[5] = { is_more and last and seq_of(last) or false, what }
  return ended
end

-- How many ready messages go before a sequence in the lane of a level, where the most urgent lane goes first: counted, and none is read. Arguments: the level, the sequence. Answers how many, in all and in the lane.
local function ahead_of(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  local ended, level, key = answer(p, false), LEFT.inside(p, tonumber(args[4])), key_of(tonumber(args[5]))
  ended[5] = { redis.call('ZLEXCOUNT', p.base .. ':o', '-', '(' .. rank_of(level) .. key), before_in_lane(p, level, key) }
  return ended
end

-- What goes next, and nothing is changed: not even time passes. Where nothing but lanes decides it. Arguments: whose place it is, most messages, the most urgent level (or empty: whichever is). Answers how many calls there
-- have been, what the last one showed, and of each message the member and its bytes, 24 bytes.
local function peek(keys, args)
  local base = keys[1]
  local c = redis.call('HMGET', base .. ':c', 'calls', 'heads', 'epoch', 'left', 'goes', 'of')
  if not c[1] then return { 'gone' } end
  if is_anothers(c[6], args[1]) then return { 'another', c[6] } end
  local p = {}
  LEFT.read(p, c[3], c[4], c[5])
  local from = args[3] ~= '' and '[' .. rank_of(LEFT.inside(p, tonumber(args[3]))) or '-'
  local members = redis.call('ZRANGE', base .. ':o', from, '+', 'BYLEX', 'LIMIT', 0, tonumber(args[2]))
  if #members == 0 then return { tonumber(c[1]), c[2] or '', '' } end
  local which = {}
  for at, member in ipairs(members) do which[at] = key_in(member) end
  for at, packed in ipairs(redis.call('HMGET', base .. ':m', unpack(which))) do
    members[at] = LEFT.told(p, members[at]) .. key_of(cmsgpack.unpack(packed)[BYTES])
  end
  return { tonumber(c[1]), c[2] or '', table.concat(members) }
end

redis.register_function({ function_name = 'ot_peek', callback = peek, flags = { 'no-writes', 'allow-oom' } })
register_always('ot_view', view)
register_always('ot_browse', browse)
register_always('ot_look', look)
register_always('ot_ahead', ahead_of)
