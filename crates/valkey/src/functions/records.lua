-- What is kept of the work on a message: of each attempt that did not end it, and of the last one.

local RECORDS = {}

do

-- Most bytes of error and output of one report.
local REPORT_BYTES_MAX = 32768

-- What is said of work that ends: exit code, error, output, each or false. A report without output has the end of what the holder of the lease reported so far.
function RECORDS.said(m, report)
  local exit_code, problem, output = false, false, false
  if report then exit_code, problem, output = report[1], report[2], report[3] end
  local progress = m[STATE] == LEASED and m[PROGRESS]
  if output or not progress or progress == '' then return exit_code, problem, output end
  local from = math.max(1, #progress + #(problem or '') - REPORT_BYTES_MAX + 1)
  -- The first character is whole.
  while from <= #progress and string.byte(progress, from) >= 128 and string.byte(progress, from) < 192 do from = from + 1 end
  return exit_code, problem, string.sub(progress, from)
end

-- A report as arguments say it from here: an exit code, an error, the end of the output; these as `=` and the text, or empty.
function RECORDS.told(args, at)
  local function text(i) return args[i] ~= '' and string.sub(args[i], 2) end
  return { tonumber(args[at]) or false, text(at + 1), text(at + 2) }
end

-- Notes what the holder of a lease has reported so far; false: nothing.
function RECORDS.progress(m, output)
  -- A message that was stored before attempts were remembered has no place for them.
  m[ATTEMPTS], m[PROGRESS] = m[ATTEMPTS] or false, output
end

-- How the work on a message went, from now on its record: how it ended, queue, lane, when it was published, begun (or false) and over, how often it was begun, and what was said of
-- it: exit code, error, output, each or false.
function RECORDS.of(p, m, ending, report)
  local exit_code, problem, output = RECORDS.said(m, report)
  local lane = name_of(p, lane_of(p, m[PRIORITY]))
  return { ending, p.settings.name, lane, m[SINCE], m[WORK] and m[WORK][1], p.now, m[COUNT], exit_code, problem, output }
end

-- Most attempts that a message remembers, and bytes of what is said of them in all.
local ATTEMPTS_MAX, ATTEMPTS_BYTES_MAX = 8, 65536

-- Remembers an attempt at the work on a message: how it ended, when it was begun (or false) and over, exit code, error, output, each or false. The oldest are dropped where there
-- are too many, and the first that is kept says in its seventh field how many were, if any.
function RECORDS.note(m, attempt)
  local function bytes(one) return #(one[5] or '') + #(one[6] or '') end
  local before, kept, room = m[ATTEMPTS] or {}, { attempt }, ATTEMPTS_BYTES_MAX - bytes(attempt)
  for at = #before, math.max(1, #before - ATTEMPTS_MAX + 2), -1 do
    room = room - bytes(before[at])
    if room < 0 then break end
    table.insert(kept, 1, before[at])
  end
  local dropped = (before[1] and before[1][7] or 0) + #before + 1 - #kept
  if dropped > 0 then kept[1][7] = dropped end
  m[ATTEMPTS] = kept
end

-- Remembers the attempt that ends now, unless neither anything was said of it nor is known when it was begun.
function RECORDS.attempt(p, m, ending, report, problem)
  local exit_code, said, output = RECORDS.said(m, report)
  local begun = m[WORK] and m[WORK][1]
  if begun or exit_code or said or output then RECORDS.note(m, { ending, begun, p.now, exit_code, said or problem, output }) end
end

-- How an attempt ended by which a message comes back, and what is said of it where nobody says anything else.
RECORDS.returns = {
  failed = { 'failed', 'negatively acknowledged' }, expired = { 'lease_expired', 'the lease ran out' }, lost = { 'failed', 'the consumer went away' },
}

-- How the work on a message ended that dies of something, and what is said of it where nobody says anything else.
RECORDS.endings = { rejected = 'failed', delivery_limit = 'failed', expired = 'timeout', timeout = 'timeout', maxlen = 'cancelled' }
RECORDS.errors = {
  rejected = 'rejected', delivery_limit = 'delivery limit', expired = 'expired before it was done', timeout = 'ran too long', maxlen = 'the queue was full',
}

end
