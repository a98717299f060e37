-- Limits of what is out at once, where a queue is in several places: what is out is counted by slots, which the first place of the queue grants to the others, and never more of them than
-- the limit says. A place leases as long as it has a slot that nobody has a message in.
--
-- How many slots a place was ever granted and how many it ever gave back are two numbers that only grow, known to the place and to the first place. Each hears of the greater one
-- sooner or later, and what it has not heard yet makes it count more slots as out than there are: never fewer. So whoever carries these numbers may do it twice, or die.
--
--   p.slots   by the name of the limit (empty: of the queue; else the level of a lane): granted, given back, whether to give back what is idle, how many were idle when it was last said
--   :s        of the first place: how many are out by the name of the limit, and of each other place, behind a space, what was granted and given back

local SLOTS = {}

do

local GRANTED, RETURNED, DRAINS, IDLE = 1, 2, 3, 4

-- How many may be leased by a limit: all of it; of a place that is one of several, as many as it has slots.
function SLOTS.most(p, name, limit)
  if not p.slots then return limit end
  local slots = p.slots[name]
  return slots and math.min(limit, slots[GRANTED] - slots[RETURNED]) or 0
end

function SLOTS.are_limited(settings) return settings.by_clock and (settings.max_active > 0 or next(settings.caps) ~= nil) end

-- The limit of a name; 0: none.
function SLOTS.limit(p, name) return name == '' and p.settings.max_active or p.settings.caps[name] or 0 end

function SLOTS.read(p, packed)
  p.slots = (packed or SLOTS.are_limited(p.settings)) and (packed and cmsgpack.unpack(packed) or {}) or nil
end

local function slots_of(p, name)
  p.slots[name] = p.slots[name] or { 0, 0, false, 0 }
  return p.slots[name]
end

-- Hears how many were granted in all. Whoever grants has counted all others that are out, so they are right.
function SLOTS.take(p, granted)
  if granted == '' or not p.slots then return end
  for name, total in pairs(cjson.decode(granted)) do
    local slots = slots_of(p, name)
    if total > slots[GRANTED] then slots[GRANTED], slots[DRAINS] = total, false end
  end
end

-- A limit is another one: what was granted by a greater one goes back as soon as it can.
function SLOTS.drain(p, was, is)
  if not p.slots then return end
  for name, slots in pairs(p.slots) do
    local before = name == '' and was.max_active or was.caps[name] or 0
    local now = name == '' and is.max_active or is.caps[name] or 0
    if now < before then slots[DRAINS] = true end
  end
end

-- What is said of slots: of each limit its name, how many were granted and given back, and how many are idle. True: some are that were not.
function SLOTS.tell(p, leased_of)
  local told, is_freed = {}, false
  if p.settings.max_active > 0 then slots_of(p, '') end
  for level in pairs(p.settings.caps) do slots_of(p, level) end
  for name, slots in pairs(p.slots) do
    local has = slots[GRANTED] - slots[RETURNED]
    local idle = math.max(0, has - (SLOTS.limit(p, name) > 0 and leased_of(p, name) or 0))
    if slots[DRAINS] or SLOTS.limit(p, name) == 0 then
      slots[RETURNED] = slots[RETURNED] + idle
      -- They are elsewhere from now on, for whoever asks; who asked for just that knows.
      is_freed = is_freed or (idle > 0 and p.gives_back ~= name)
      idle = 0
    end
    is_freed = is_freed or (idle > 0 and slots[IDLE] == 0)
    slots[IDLE] = idle
    told[#told + 1] = { name, slots[GRANTED], slots[RETURNED], idle }
  end
  return told, is_freed
end

-- Gives back the slots of a limit in which there is nothing, and those that become free.
function SLOTS.give_back(p, name, granted)
  p.slots = p.slots or {}
  local slots = slots_of(p, name)
  slots[GRANTED], slots[DRAINS] = math.max(slots[GRANTED], granted), true
  p.gives_back = name
end

end
