-- Work of which one process at a time does it: the process that leads says again and again that it goes on, and another begins when it has not said so for too long.
--
--   KEYS[1]   of each work `process until fence`; under the empty name the last fence that was given   hash
-- Told on the channel KEYS[1] when work is given back.

-- A fence is higher than all before it, also where the servers have forgotten those: it is the time, µs since 1970.
local function next_fence(base, now)
  local last = tonumber(redis.call('HGET', base, '') or 0)
  local fence = text(math.max(last + 1, now * 1000))
  redis.call('HSET', base, '', fence)
  return fence
end

-- Asks for work, or goes on with it, for so long from now, ms; 0: gives it back. Arguments: the process; how long; each work. Answers of each work who leads, and the fence.
local function lead(keys, args)
  local base, me, ms = keys[1], args[1], tonumber(args[2])
  local time = redis.call('TIME')
  local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local answer, is_free = {}, false
  for at = 3, #args do
    local work = args[at]
    local kept = redis.call('HGET', base, work) or ''
    local leader, ends, fence = string.match(kept, '^(%S+) (%d+) (%d+)$')
    if ms == 0 then
      if leader == me then
        redis.call('HDEL', base, work)
        is_free = true
      end
    else
      if leader ~= me and (not leader or tonumber(ends) <= now) then leader, fence = me, next_fence(base, now) end
      if leader == me then redis.call('HSET', base, work, me .. ' ' .. text(now + ms) .. ' ' .. fence) end
      answer[#answer + 1] = leader
      answer[#answer + 1] = fence
    end
  end
  if is_free then redis.call('SPUBLISH', base, 'free') end
  return answer
end

register_always('ot_lead', lead)
