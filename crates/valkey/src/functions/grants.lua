-- Who grants slots, and who gives them back: see there.

-- What the first place knows of another.
local function share_of(ledger, name, place)
  local known = redis.call('HGET', ledger, name .. ' ' .. place)
  return known and cmsgpack.unpack(known) or { 0, 0 }
end

-- Grants slots of a limit, as many as are there. Arguments: the name of the limit, the place they are for, how many it would have; then places, and how many each was ever granted and
-- gave back. Answers how many the place was ever granted; where none is left, then places that have some, and how many each was ever granted.
local function grant(keys, args)
  return once(keys, args, function(p)
    local ledger, name, place = p.base .. ':s', args[4], args[5]
    local was = tonumber(redis.call('HGET', ledger, name) or 0)
    local out = was
    for at = 7, #args, 3 do
      local known = share_of(ledger, name, args[at])
      local granted, returned = math.max(known[1], tonumber(args[at + 1])), math.max(known[2], tonumber(args[at + 2]))
      if granted > known[1] or returned > known[2] then
        out = out + (granted - returned) - (known[1] - known[2])
        redis.call('HSET', ledger, name .. ' ' .. args[at], cmsgpack.pack({ granted, returned }))
      end
    end
    local known, free = share_of(ledger, name, place), math.max(0, SLOTS.limit(p, name) - out)
    local more = math.min(tonumber(args[6]), free)
    if more > 0 then
      known[1], out = known[1] + more, out + more
      redis.call('HSET', ledger, name .. ' ' .. place, cmsgpack.pack(known))
    end
    if out ~= was then redis.call('HSET', ledger, name, out) end
    local what = { known[1] }
    if more == 0 then
      local all, front = redis.call('HGETALL', ledger), name .. ' '
      for at = 1, #all, 2 do
        if string.sub(all[at], 1, #front) == front then
          local share = cmsgpack.unpack(all[at + 1])
          if share[1] > share[2] then
            what[#what + 1] = tonumber(string.sub(all[at], #front + 1))
            what[#what + 1] = share[1]
          end
        end
      end
    end
    return what
  end)
end

-- Gives back the slots of a limit in which there is nothing. Arguments: the name of the limit, how many were ever granted.
local function give_back_slots(keys, args)
  local p, instead = begin(keys, args)
  if not p then return instead end
  SLOTS.give_back(p, args[4], tonumber(args[5]))
  return answer(p, {})
end

register_always('ot_grant', grant)
register_always('ot_give_back_slots', give_back_slots)
