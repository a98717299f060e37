-- A process comes to consume, or goes: see there.

-- From now on a process has so many consumers. Arguments: the process, how long it is believed to be there that says nothing more, ms; how many, whether one of them is to be the only one (1
-- or 0). Declined where one more would not be alone, or another is to be. Answers how many others have, whether the process came first of those that have any, and whether anybody ever had.
local function attend(keys, args)
  return once(keys, args, function(p)
    local process, consumers, is_only = args[4], tonumber(args[6]), tonumber(args[7])
    local all, last = ATTENDANCE.read(p)
    local known, others, only, first = all[process], 0, 0, nil
    for name, one in pairs(all) do
      if name ~= process then
        others, only = others + one[2], math.max(only, one[3])
        if not first or one[1] < first then first = one[1] end
      end
    end
    if consumers > (known and known[2] or 0) and (only == 1 or (is_only == 1 and others > 0)) then return { 'consumer_exclusive' } end
    if consumers == 0 then
      ATTENDANCE.strike_off(p, process)
      return { others, 0, last > 0 and 1 or 0 }
    end
    local came = known and known[1] or last + 1
    redis.call('HSET', p.base .. ':a', process, cmsgpack.pack({ came, consumers, is_only }), '', text(math.max(last, came)))
    put(p, 'alive', process, p.now + tonumber(args[5]))
    return { others, (not first or came < first) and 1 or 0, 1 }
  end)
end

register_always('ot_attend', attend)
