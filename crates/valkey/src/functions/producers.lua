-- Producers that number what they publish: what a producer numbered is taken once, however long ago it came.
--
-- A producer numbers its messages in any order, and says below which number it publishes nothing more: its floor. Numbers are kept by blocks of 4,096, each as a block and where in it.
--   :r  of a producer: its floor, runs of blocks of which everything is taken, blocks of which something is; and by producer, a zero and a block: a bit for each number that is taken,
--       the lowest first                                       hash
--   :ru when producers were last used                     sorted set, scores are milliseconds
-- What is forgotten too early, for want of room or unused for long, is taken once more; nothing is ever left out that was not taken.

local was_taken, note_taken, save_producers

-- Only these are used elsewhere: a chunk of Lua has no more than 200 local names.
do

-- Bytes of the bits of a block.
local BITS_LEN = 512
-- Most runs of whole blocks of a producer, and most other blocks; of more the lowest is forgotten.
local RUNS_MAX, BLOCKS_MAX = 64, 256
-- Most producers and blocks; beyond that whoever was not used for longest is forgotten.
local NUMBERED_MAX = 65536
-- A producer is forgotten after so long, ms; that it is used is noted so often at most.
local IDLE_MS, USED_MS = 1209600000, 3600000

local function block_field(name, block) return name .. ZERO .. key_of(block) end

local function producer(p, name)
  local one = p.producers[name]
  if one == nil then
    local packed = redis.call('HGET', p.base .. ':r', name)
    one = false
    if packed then
      local got = cmsgpack.unpack(packed)
      one = { floor = got[1], whole = got[2], blocks = {} }
      for _, block in ipairs(got[3]) do one.blocks[block] = true end
    end
    p.producers[name] = one
  end
  return one
end

local function bits_of(p, name, block)
  local field = block_field(name, block)
  if p.numbers[field] == nil then p.numbers[field] = redis.call('HGET', p.base .. ':r', field) end
  return p.numbers[field] or '', field
end

local function has_bit(bits, at)
  local byte = string.byte(bits, math.floor(at / 8) + 1) or 0
  return math.floor(byte / 2 ^ (at % 8)) % 2 == 1
end

local function with_bit(bits, at)
  local before = math.floor(at / 8)
  bits = bits .. string.rep(ZERO, before - #bits)
  local byte = string.byte(bits, before + 1) or 0
  return string.sub(bits, 1, before) .. string.char(byte + 2 ^ (at % 8)) .. string.sub(bits, before + 2)
end

local function is_whole(one, block)
  for _, run in ipairs(one.whole) do
    if run[1] <= block and block < run[1] + run[2] then return true end
  end
  return false
end

-- Whether a message was taken: its producer, the block and where in it of its number, and of the floor.
function was_taken(p, origin)
  local one = origin and producer(p, origin[1])
  if not one then return false end
  local block, at, floor = origin[2], origin[3], one.floor
  if block < floor[1] or (block == floor[1] and at < floor[2]) or is_whole(one, block) then return true end
  return one.blocks[block] and has_bit(bits_of(p, origin[1], block), at) or false
end

local function forget_block(p, name, one, block)
  one.blocks[block] = nil
  p.numbers[block_field(name, block)] = false
end

local function lowest(blocks)
  local least, count = nil, 0
  for block in pairs(blocks) do
    count = count + 1
    if not least or block < least then least = block end
  end
  return least, count
end

-- Everything of a block is taken.
local function add_whole(one, block)
  local runs, at = one.whole, 1
  while runs[at] and runs[at][1] < block do at = at + 1 end
  table.insert(runs, at, { block, 1 })
  local after, before = runs[at + 1], runs[at - 1]
  if after and after[1] == block + 1 then
    runs[at][2] = 1 + after[2]
    table.remove(runs, at + 1)
  end
  if before and before[1] + before[2] == block then
    before[2] = before[2] + runs[at][2]
    table.remove(runs, at)
  end
  if #runs > RUNS_MAX then table.remove(runs, 1) end
end

local function raise_floor(p, name, one, block, at)
  local floor = one.floor
  if block < floor[1] or (block == floor[1] and at <= floor[2]) then return end
  one.floor = { block, at }
  while one.whole[1] and one.whole[1][1] + one.whole[1][2] <= block do table.remove(one.whole, 1) end
  for open in pairs(one.blocks) do
    if open < block then forget_block(p, name, one, open) end
  end
end

-- Whoever was not used for longest goes, if that is long ago or there is no room.
local function forget_idle(p, own)
  local is_full = redis.call('HLEN', p.base .. ':r') >= NUMBERED_MAX
  local idlest = redis.call('ZRANGE', p.base .. ':ru', 0, 1, 'WITHSCORES')
  for at = 1, #idlest, 2 do
    local name = idlest[at]
    if name ~= own and not p.producers[name] and (is_full or tonumber(idlest[at + 1]) + IDLE_MS <= p.now) then
      local one = producer(p, name)
      for block in pairs(one and one.blocks or {}) do forget_block(p, name, one, block) end
      p.producers[name], p.numbers[name] = false, false
      put(p, 'producers', name, false)
      return
    end
  end
  local one = producer(p, own)
  local least = is_full and lowest(one.blocks)
  if least then forget_block(p, own, one, least) end
end

-- It is taken, and not taken again.
function note_taken(p, origin)
  if not origin then return end
  local name, block, at = origin[1], origin[2], origin[3]
  local one = producer(p, name)
  local is_new = not one
  if is_new then
    one = { floor = { 0, 0 }, whole = {}, blocks = {} }
    p.producers[name] = one
  end
  p.has_numbered[name] = true
  if is_new or not one.blocks[block] then forget_idle(p, name) end
  raise_floor(p, name, one, origin[4], origin[5])
  local bits, field = bits_of(p, name, block)
  if not has_bit(bits, at) then bits = with_bit(bits, at) end
  one.blocks[block], p.numbers[field] = true, bits
  if #bits == BITS_LEN and not string.find(bits, '[^\255]') then
    forget_block(p, name, one, block)
    add_whole(one, block)
  end
  local least, count = lowest(one.blocks)
  if count > BLOCKS_MAX then forget_block(p, name, one, least) end
end

function save_producers(p)
  if not next(p.has_numbered) then return end
  for name in pairs(p.has_numbered) do
    local one, blocks = p.producers[name], {}
    for block in pairs(one.blocks) do blocks[#blocks + 1] = block end
    p.numbers[name] = cmsgpack.pack({ one.floor, one.whole, blocks })
    local used = redis.call('ZSCORE', p.base .. ':ru', name)
    if not used or tonumber(used) + USED_MS <= p.now then put(p, 'producers', name, p.now) end
  end
  save_hash(p, ':r', p.numbers)
end

end
