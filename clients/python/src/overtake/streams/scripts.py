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
