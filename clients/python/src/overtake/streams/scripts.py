"""What must happen in one go: scripts that the server runs.

All of them look first whether an entry is still pending under our name: somebody may have claimed it, or an answer was lost and the same is
asked again.
"""

from __future__ import annotations

#: Adds a dead letter and acknowledges what it was made of. Fails before the second where the first fails.
#:
#: Keys: the stream, its dead letters. Arguments: group, consumer, id, then the letter's fields. Answers 1, or 0 where
#: the entry is not ours any more.
BURY = """
local mine = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2])
if not mine[1] then return 0 end
local add = {'XADD', KEYS[2], '*'}
for i = 4, #ARGV do add[#add + 1] = ARGV[i] end
redis.call(unpack(add))
redis.call('XACK', KEYS[1], ARGV[1], ARGV[3])
return 1
"""

#: Hands an entry of ours over once more, which counts.
#:
#: Keys: the stream. Arguments: group, consumer, id. Answers `[id, fields, count]`, or nothing where it is gone or not
#: ours any more.
AGAIN = """
local mine = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2])
if not mine[1] then return false end
local entry = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[3])[1]
if not entry then
  redis.call('XACK', KEYS[1], ARGV[1], ARGV[3])
  return false
end
return {entry[1], entry[2], mine[1][4] + 1}
"""

#: Takes over a batch of what others have left, the oldest first, and says when to look again. A consumer that lives resets
#: the idle time of its entries three times within the least idle time, so an entry idle for half of it probably belongs
#: to a dead consumer, and the script says when the first of those may be taken over. No other entry can be before half
#: of the least idle time has passed.
#:
#: Keys: the stream. Arguments: group, consumer, least idle time in ms, how many. Answers `[ms until there may be more,
#: [[id, fields, count], …]]`.
CLAIM = """
local idle, all = tonumber(ARGV[3]), {}
local left = redis.call('XPENDING', KEYS[1], ARGV[1], 'IDLE', idle, '-', '+', ARGV[4])
for _, pending in ipairs(left) do
  local entry = redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, pending[1])[1]
  if entry then
    all[#all + 1] = {entry[1], entry[2], pending[4] + 1}
  else
    redis.call('XACK', KEYS[1], ARGV[1], pending[1])
  end
end
if left[1] then return {0, all} end
local wait = math.ceil(idle / 2)
local silent = redis.call('XPENDING', KEYS[1], ARGV[1], 'IDLE', idle - wait, '-', '+', 1000)
for _, pending in ipairs(silent) do wait = math.min(wait, idle - pending[3]) end
return {wait, all}
"""

#: Takes an entry of the first of several streams that has one for us: the oldest of those that a dead consumer holds, or we, else
#: the first new one. Where anything else is pending, nothing is taken, so the group has one entry of a stream at a time. A
#: consumer leaves the group that it holds nothing of any more.
#:
#: Keys: the streams. Arguments: group, consumer, least idle time in ms. Answers a pair for each stream that was looked at:
#: `entry` and `[id, fields, count]`, which is the last pair; `empty` and the id behind which nothing is; `busy` and in how many
#: ms it can be taken over; `fault` and an error.
TAKE = """
local group, consumer, idle = ARGV[1], ARGV[2], tonumber(ARGV[3])
local function take(stream)
  while true do
    local groups, pending, last = redis.pcall('XINFO', 'GROUPS', stream), 0, nil
    if groups.err then
      if string.find(groups.err, 'no such key') then return {'empty', '0-0'} end
      return {'fault', groups.err}
    end
    for _, of in ipairs(groups) do
      local told = {}
      for i = 1, #of, 2 do told[of[i]] = of[i + 1] end
      if told['name'] == group then pending, last = told['pending'], told['last-delivered-id'] end
    end
    if not last then
      local made = redis.pcall('XGROUP', 'CREATE', stream, group, '0')
      if made.err then return {'fault', made.err} end
      last = '0-0'
    end
    if pending > 0 then
      local first = redis.call('XPENDING', stream, group, '-', '+', 1)[1]
      local id, whose = first[1], first[2]
      if whose ~= consumer and first[3] < idle then return {'busy', idle - first[3]} end
      local entry = redis.call('XCLAIM', stream, group, consumer, 0, id)[1]
      if whose ~= consumer and not redis.call('XPENDING', stream, group, '-', '+', 1, whose)[1] then
        redis.call('XGROUP', 'DELCONSUMER', stream, group, whose)
      end
      if entry then return {'entry', {entry[1], entry[2], first[4] + 1}} end
      redis.call('XACK', stream, group, id)
    elseif redis.call('XRANGE', stream, '(' .. last, '+', 'COUNT', 1)[1] then
      local entry = redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', stream, '>')[1][2][1]
      return {'entry', {entry[1], entry[2], 1}}
    else
      return {'empty', last}
    end
  end
end
local all = {}
for i, stream in ipairs(KEYS) do
  all[i] = take(stream)
  if all[i][1] == 'entry' then break end
end
return all
"""

#: Acknowledges an entry of ours, and leaves the group where we hold nothing more: what we do not have any more somebody else
#: may be working on.
#:
#: Keys: the stream. Arguments: group, consumer, id. Answers 1, or 0 where the entry is not ours any more.
ACK = """
local mine = redis.pcall('XPENDING', KEYS[1], ARGV[1], ARGV[3], ARGV[3], 1, ARGV[2])
if mine.err and not string.find(mine.err, 'NOGROUP') then return mine end
if not mine[1] then return 0 end
redis.call('XACK', KEYS[1], ARGV[1], ARGV[3])
if not redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2])[1] then
  redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
end
return 1
"""

#: Makes a group that begins with what is new, in each stream that is there and has none.
#:
#: Keys: the streams. Arguments: group.
MAKE_GROUPS = """
for _, stream in ipairs(KEYS) do redis.pcall('XGROUP', 'CREATE', stream, ARGV[1], '$') end
return 1
"""

#: How far a group is in several streams.
#:
#: Keys: streams, each followed by its dead letters. Arguments: group. Answers for each stream: dead letters or why those cannot
#: be read, pending entries, those that wait or -1 where the server does not know, the id behind which they are, the id of the
#: oldest that is pending or waits, or nothing, and 1 where the stream has the group; or why the stream cannot be read.
FAR = """
local function far(stream, dead)
  local pending, lag, last, has_group = 0, nil, '0-0', 0
  local len = redis.call('XLEN', stream)
  if len > 0 or redis.call('EXISTS', stream) == 1 then
    for _, of in ipairs(redis.call('XINFO', 'GROUPS', stream)) do
      local told = {}
      for at = 1, #of, 2 do told[of[at]] = of[at + 1] end
      if told['name'] == ARGV[1] then
        pending, lag, last, has_group = told['pending'], tonumber(told['lag']) or -1, told['last-delivered-id'], 1
      end
    end
  end
  local first = redis.call('XRANGE', stream, '(' .. last, '+', 'COUNT', 1)[1]
  local oldest = first and first[1]
  if pending > 0 then oldest = redis.call('XPENDING', stream, ARGV[1])[2] end
  local letters = redis.pcall('XLEN', dead)
  return {type(letters) == 'table' and letters.err or letters, pending, lag or len, last, oldest or false, has_group}
end
local all = {}
for i = 1, #KEYS, 2 do
  local _, told = pcall(far, KEYS[i], KEYS[i + 1])
  all[#all + 1] = told.err or told
end
return all
"""

#: The names of the groups of several streams, one for each stream that has it; for a stream that cannot be read a pair of its
#: name and why.
#:
#: Keys: the streams.
GROUPS = """
local all = {}
for _, stream in ipairs(KEYS) do
  if redis.call('EXISTS', stream) == 1 then
    local groups = redis.pcall('XINFO', 'GROUPS', stream)
    if groups.err then all[#all + 1] = {stream, groups.err} end
    for _, of in ipairs(groups) do
      for at = 1, #of, 2 do
        if of[at] == 'name' then all[#all + 1] = of[at + 1] end
      end
    end
  end
end
return all
"""

#: Deletes the entries that every group has settled, up to the first that any group needs. A stream in which one of the groups
#: is missing stays whole.
#:
#: Keys: the streams. Arguments: all groups. Answers how many are gone, then for each stream that cannot be trimmed a pair of
#: its name and why.
TRIM = r"""
local function is_before(a, b)
  local a_ms, a_number = string.match(a, '(%d+)-(%d+)')
  local b_ms, b_number = string.match(b, '(%d+)-(%d+)')
  if a_ms == b_ms then a_ms, b_ms = a_number, b_number end
  if #a_ms ~= #b_ms then return #a_ms < #b_ms end
  return a_ms < b_ms
end
local function trim(stream)
  local missing, first = #ARGV, nil
  local groups = redis.call('EXISTS', stream) == 1 and redis.call('XINFO', 'GROUPS', stream) or {}
  for _, of in ipairs(groups) do
    local told = {}
    for at = 1, #of, 2 do told[of[at]] = of[at + 1] end
    for _, group in ipairs(ARGV) do
      if group == told['name'] then missing = missing - 1 end
    end
    local needed
    if told['pending'] > 0 then
      needed = redis.call('XPENDING', stream, told['name'])[2]
    else
      local next = redis.call('XRANGE', stream, '(' .. told['last-delivered-id'], '+', 'COUNT', 1)[1]
      needed = next and next[1]
    end
    if needed and (not first or is_before(needed, first)) then first = needed end
  end
  if missing > 0 or #groups == 0 then return 0 end
  if first then return redis.call('XTRIM', stream, 'MINID', first) end
  return redis.call('XTRIM', stream, 'MAXLEN', 0)
end
local all = {0}
for _, stream in ipairs(KEYS) do
  local is_read, told = pcall(trim, stream)
  if is_read then all[1] = all[1] + told else all[#all + 1] = {stream, told.err or told} end
end
return all
"""

#: Counts entries behind an id without sending them.
#:
#: Keys: the stream. Arguments: where to begin, how many at most. Answers how many there were, and the last.
COUNT = """
local found = redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', ARGV[2])
return {#found, found[1] and found[#found][1] or false}
"""

#: How many entries each stream has; 0 where it cannot be read.
#:
#: Keys: the streams.
LENGTHS = """
local all = {}
for i, stream in ipairs(KEYS) do all[i] = tonumber(redis.pcall('XLEN', stream)) or 0 end
return all
"""

#: Says that entries are being worked on, so that nobody takes them over.
#:
#: Keys: the stream. Arguments: group, consumer, ids. Answers the ids that are not ours any more.
KEEP = """
local gone = {}
for i = 3, #ARGV do
  local mine = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2])
  if mine[1] then
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'JUSTID')
  else
    gone[#gone + 1] = ARGV[i]
  end
end
return gone
"""

#: Gives entries back: with so many attempts counted, and as if they had been idle for so long.
#:
#: Keys: the stream. Arguments: group, consumer, then id, attempts and ms of each.
HAND_BACK = """
for i = 3, #ARGV, 3 do
  local mine = redis.call('XPENDING', KEYS[1], ARGV[1], ARGV[i], ARGV[i], 1, ARGV[2])
  if mine[1] then
    redis.call('XCLAIM', KEYS[1], ARGV[1], ARGV[2], 0, ARGV[i], 'IDLE', ARGV[i + 2], 'RETRYCOUNT', ARGV[i + 1], 'JUSTID')
  end
end
return 1
"""

#: Takes a consumer that holds nothing out of its group.
#:
#: Keys: the stream. Arguments: group, consumer.
LEAVE = """
if redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2])[1] then return 0 end
redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
"""

#: Adds a dead letter to a stream again and deletes it. Fails before the second where the first fails.
#:
#: Keys: the dead letters, the stream. Arguments: id, then the entry's fields. Answers 1, or 0 where the letter is
#: gone.
REPLAY = """
if not redis.call('XRANGE', KEYS[1], ARGV[1], ARGV[1])[1] then return 0 end
local add = {'XADD', KEYS[2], '*'}
for i = 2, #ARGV do add[#add + 1] = ARGV[i] end
redis.call(unpack(add))
redis.call('XDEL', KEYS[1], ARGV[1])
return 1
"""

#: Deletes all letters at once. Answers how many there were.
#:
#: Keys: the dead letters.
PURGE = """
local count = redis.call('XLEN', KEYS[1])
redis.call('UNLINK', KEYS[1])
return count
"""
