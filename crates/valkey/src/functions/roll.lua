-- A broker says what it is. Arguments: its name, what it says. Answers of each broker that is enrolled its name, until when it is believed to be there, ms since 1970, and what it said (or empty).
local function introduce(keys, args)
  local about, roll = keys[1] .. ':about', keys[1] .. ':roll'
  if redis.call('HGET', about, args[1]) ~= args[2] then redis.call('HSET', about, args[1], args[2]) end
  local all = redis.call('ZRANGE', roll, 0, -1, 'WITHSCORES')
  local brokers, is_there = {}, {}
  for at = 1, #all, 2 do
    is_there[all[at]] = true
    brokers[#brokers + 1] = { all[at], tonumber(all[at + 1]), redis.call('HGET', about, all[at]) or '' }
  end
  for _, name in ipairs(redis.call('HKEYS', about)) do
    if not is_there[name] then redis.call('HDEL', about, name) end
  end
  return brokers
end

register_always('ot_introduce', introduce)
