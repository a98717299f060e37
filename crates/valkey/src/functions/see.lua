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
    oldest[#oldest + 1] = { level, message(p, key_in(member))[SINCE] }
    see(key_in(member))
  end
  for _, set in ipairs({ 'delayed', 'leased', 'dead' }) do see(redis.call('ZRANGE', p.base .. NAMES[set], 0, 0)[1]) end
  ended[5] = { redis.call('HGETALL', p.base .. ':g'), oldest, first and seq_of(first) or p.seq + 1, p.seq, ATTENDANCE.of_others(p, p.caller), tonumber(redis.call('HGET', p.base .. ':c', 'active') or 0) }
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
register_always('ot_view', view)
register_always('ot_browse', browse)
