-- Levels of lanes, and lanes that are being left.
--
-- A lane is known by a level, a number: the greater, the more urgent. A change of lanes begins an epoch: the levels of the lanes that there are from then on are greater by SPAN than those of the lanes
-- before, so what comes into them goes first, and nothing that is there has to be touched. The messages of the lanes before go to the new ones step by step, see LEFT.go_on; until then such a
-- lane is being left. Outside of these functions lanes have the levels that settings give them, and a lane that is being left has a number that is lower than those.
--
--   p.epoch, p.shift  how often lanes were changed, and by how much the levels of the present lanes are greater than outside
--   p.left            while lanes are being left: `lanes`, each its level, its number outside and its name, the lowest first; `first`, the order of lanes before any change, if any of them is one of those;
--                     `ungrouped`, if there is one, a level: what stands in lanes below it is in no group yet; `has_same`, whether the present lanes are the same as those before
--   p.goes            how far that has come: what is gone through, and the last sequence that was

local SPAN = 4294967296

-- More urgent levels come first: those from before any change of lanes as eight bytes, those that came by later changes as twelve.
local function rank_of(level)
  local epoch = math.floor((level + 2147483648) / SPAN)
  local low = 2147483647 - (level - epoch * SPAN)
  return epoch == 0 and struct.pack('>I8', low) or struct.pack('>I8I4', 16777215 - epoch, low)
end

local function level_in(rank)
  if #rank == 8 then return 2147483647 - struct.unpack('>I8', rank) end
  local epoch, low = struct.unpack('>I8I4', rank)
  return 2147483647 - low + (16777215 - epoch) * SPAN
end

local function rank_in(member) return string.sub(member, 1, -9) end

local function level_of(member) return level_in(rank_in(member)) end

local function key_in(member) return string.sub(member, -8) end

-- What a lane has comes from its rank on, and before this.
local function end_of(level) return rank_of(level) .. '\255' end

local LEFT = {}

do

-- Numbers of lanes that are being left are below this; so many for each epoch, of which those of the usual priorities are from here to there.
local NUMBERS_END, NUMBERS, USUAL_LEAST, USUAL_MOST, USUAL_FROM = -1073741824, 65536, -256, 511, 16384

function LEFT.read(p, epoch, left, goes)
  p.epoch = tonumber(epoch or 0)
  p.shift = p.epoch * SPAN
  p.left, p.goes = left and cmsgpack.unpack(left) or nil, goes
  -- The leases of the present lanes are not all counted yet.
  p.counts_leases = p.left and string.sub(goes, 1, 6) == 'leased'
  if not p.left then return end
  p.left.by_level, p.left.by_number = {}, {}
  for _, lane in ipairs(p.left.lanes) do
    p.left.by_level[lane[1]] = lane
    p.left.by_number[lane[2]] = lane
  end
end

-- Below this there are only lanes that are being left.
function LEFT.floor(p) return p.shift - 2147483648 end

function LEFT.is_left(p, level) return level < LEFT.floor(p) end

function LEFT.is_ungrouped(p, level) return p.left and p.left.ungrouped and level < p.left.ungrouped end

function LEFT.name_of(p, level) return p.left.by_level[level][3] end

-- The numbers of lanes that are left from now on, each the level that it has outside so far, the lowest first.
function LEFT.number(epoch, raw)
  local lower, higher, numbers = 0, USUAL_FROM + USUAL_MOST - USUAL_LEAST, {}
  for at, level in ipairs(raw) do
    local which
    if level < USUAL_LEAST then
      which, lower = lower, lower + 1
    elseif level > USUAL_MOST then
      higher = higher + 1
      which = higher
    else
      which = USUAL_FROM + level - USUAL_LEAST
    end
    numbers[at] = -2147483648 + (epoch % 16384) * NUMBERS + which
  end
  return numbers
end

-- The level by which a lane is known outside.
function LEFT.outside(p, level)
  if not LEFT.is_left(p, level) then return level - p.shift end
  local lane = p.left and p.left.by_level[level]
  return lane and lane[2] or -2147483648
end

-- The level of the lane that is known outside by a number.
function LEFT.inside(p, number)
  local lane = p.left and p.left.by_number[number]
  return lane and lane[1] or number + p.shift
end

-- Where something stands, as it is told.
function LEFT.told(p, member)
  if p.shift == 0 then return member end
  return struct.pack('>I8', 2147483647 - LEFT.outside(p, level_of(member))) .. key_in(member)
end

-- The last that may go, as another place tells of it. A lane that is left there and not here has no number here: then what is more urgent may go.
function LEFT.heard(p, told)
  local number = 2147483647 - struct.unpack('>I8', told)
  if not p.left or p.left.by_number[number] or number >= NUMBERS_END then return rank_of(LEFT.inside(p, number)) .. key_in(told) end
  local last = LEFT.floor(p)
  for _, lane in ipairs(p.left.lanes) do
    if lane[2] > number then
      last = lane[1]
      break
    end
  end
  return end_of(last)
end

end
