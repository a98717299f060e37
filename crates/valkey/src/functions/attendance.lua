-- Who consumes: in the first place of a queue, process by process. `:a` says of each when it came (a number that grows), how many consumers it has, and whether one of them is to be the only
-- one (1 or 0), packed as MessagePack; and under no name at all the last of those numbers: somebody came once. A process that is not known to be there any more is struck off.

local ATTENDANCE = {}

do

function ATTENDANCE.read(p)
  local all, last = {}, 0
  local got = redis.call('HGETALL', p.base .. ':a')
  for at = 1, #got, 2 do
    if got[at] == '' then last = tonumber(got[at + 1]) else all[got[at]] = cmsgpack.unpack(got[at + 1]) end
  end
  return all, last
end

-- How many consumers processes have but for this one.
function ATTENDANCE.of_others(p, process)
  local count, all = 0, ATTENDANCE.read(p)
  for name, one in pairs(all) do
    if name ~= process then count = count + one[2] end
  end
  return count
end

-- It consumes no more. Whoever waits to be the one that is served looks again.
function ATTENDANCE.strike_off(p, process)
  if redis.call('HDEL', p.base .. ':a', process) == 1 then redis.call('SPUBLISH', p.base .. ':heads', 'a') end
end

end
