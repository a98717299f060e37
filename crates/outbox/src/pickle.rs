//! What Python has pickled, as JSON: applications whose library keeps objects in the table that way (PyPI's `protean` its metadata).
//!
//! Nothing is run. An object is its state, without what begins with an underscore; of what would be called only times are known, and anything else is what it would be called with.
//! Protocols 2 to 5, <https://docs.python.org/3/library/pickle.html>; what each code means is written down in Python's `pickletools`.

use serde_json::{Map, Value};

/// Objects within objects.
const DEPTH_MAX: usize = 64;
/// Values in all, however often one of them is named.
const VALUES_MAX: usize = 100_000;

/// Whether these bytes say that they are a pickle.
pub(crate) fn is_pickle(bytes: &[u8]) -> bool {
    matches!(bytes, [0x80, 2..=5, ..])
}

/// What was pickled.
///
/// # Errors
/// Why it cannot be said in JSON, as a phrase.
pub(crate) fn json(bytes: &[u8]) -> Result<Value, String> {
    let mut machine = Machine { rest: bytes, ..Machine::default() };
    let top = machine.run()?;
    machine.json(top, 0)
}

/// A value, by its place in the machine's memory: several may name it.
type Place = usize;

enum Thing {
    Plain(Value),
    Bytes(Vec<u8>),
    Many(Vec<Place>),
    Pairs(Vec<(Place, Place)>),
    /// A class or a function, `module.name`.
    Named(String),
    /// What is made by calling something.
    Called {
        by: Place,
        with: Place,
    },
    Object {
        state: Option<Place>,
    },
}

#[derive(Default)]
struct Machine<'b> {
    rest: &'b [u8],
    things: Vec<Thing>,
    stack: Vec<Place>,
    marks: Vec<usize>,
    memo: Vec<Place>,
    told: usize,
}

impl Machine<'_> {
    fn run(&mut self) -> Result<Place, String> {
        loop {
            let [code] = self.take()?;
            match code {
                0x80 => drop(self.take::<1>()?),
                0x95 => drop(self.take::<8>()?),
                b'.' => return self.pop(),
                b'(' => self.marks.push(self.stack.len()),
                b'0' => drop(self.pop()?),
                b'1' => drop(self.since_mark()?),
                b'2' => {
                    let top = self.top()?;
                    self.stack.push(top);
                }
                b'c' => {
                    let (module, name) = (self.line()?, self.line()?);
                    self.push(Thing::Named(format!("{module}.{name}")));
                }
                0x93 => {
                    let (name, module) = (self.pop()?, self.pop()?);
                    let named = format!("{}.{}", self.text(module)?, self.text(name)?);
                    self.push(Thing::Named(named));
                }
                0x81 | 0x92 => self.new_object(code)?,
                b'R' => {
                    let (with, by) = (self.pop()?, self.pop()?);
                    self.push(Thing::Called { by, with });
                }
                b'b' => self.build()?,
                0x94 => {
                    let top = self.top()?;
                    self.memo.push(top);
                }
                b'q' | b'r' => self.put(code)?,
                b'h' => {
                    let [at] = self.take()?;
                    self.get(at.into())?;
                }
                b'j' => {
                    let at = u32::from_le_bytes(self.take()?);
                    self.get(at as usize)?;
                }
                _ if self.plain(code)? || self.collection(code)? => {}
                other => return Err(format!("its code {other:#04x} is not known")),
            }
            if self.things.len() > VALUES_MAX {
                return Err("it is too large".to_owned());
            }
        }
    }

    /// Whether the code is of a value by itself, which is there then.
    fn plain(&mut self, code: u8) -> Result<bool, String> {
        let value = match code {
            b'N' => Value::Null,
            0x88 => Value::Bool(true),
            0x89 => Value::Bool(false),
            b'J' => i32::from_le_bytes(self.take()?).into(),
            b'K' => self.take::<1>()?[0].into(),
            b'M' => u16::from_le_bytes(self.take()?).into(),
            0x8a => self.long()?,
            b'G' => f64::from_be_bytes(self.take()?).into(),
            0x8c | b'X' | 0x8d => {
                let bytes = self.counted(code, [0x8c, b'X', 0x8d])?;
                String::from_utf8(bytes).map_err(|_| "its text is no UTF-8".to_owned())?.into()
            }
            b'C' | b'B' | 0x8e => {
                let bytes = self.counted(code, [b'C', b'B', 0x8e])?;
                self.push(Thing::Bytes(bytes));
                return Ok(true);
            }
            _ => return Ok(false),
        };
        self.push(Thing::Plain(value));
        Ok(true)
    }

    /// Whether the code is of a collection.
    fn collection(&mut self, code: u8) -> Result<bool, String> {
        match code {
            b')' | b']' | 0x8f => self.push(Thing::Many(Vec::new())),
            b'}' => self.push(Thing::Pairs(Vec::new())),
            0x85..=0x87 => {
                let from = self.stack.len().checked_sub(usize::from(code - 0x84)).ok_or_else(broken)?;
                let many = self.stack.split_off(from);
                self.push(Thing::Many(many));
            }
            b't' | b'l' | 0x91 => {
                let many = self.since_mark()?;
                self.push(Thing::Many(many));
            }
            b'd' => {
                let pairs = pairs(&self.since_mark()?);
                self.push(Thing::Pairs(pairs));
            }
            b'a' => {
                let one = self.pop()?;
                self.add(&[one])?;
            }
            b'e' | 0x90 => {
                let more = self.since_mark()?;
                self.add(&more)?;
            }
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                self.set(&[(key, value)])?;
            }
            b'u' => {
                let more = pairs(&self.since_mark()?);
                self.set(&more)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn new_object(&mut self, code: u8) -> Result<(), String> {
        if code == 0x92 {
            self.pop()?;
        }
        self.pop()?;
        self.pop()?;
        self.push(Thing::Object { state: None });
        Ok(())
    }

    fn build(&mut self) -> Result<(), String> {
        let state = self.pop()?;
        let top = self.top()?;
        if let Thing::Object { state: of } = &mut self.things[top] {
            *of = Some(state);
        }
        Ok(())
    }

    fn put(&mut self, code: u8) -> Result<(), String> {
        let at = if code == b'q' {
            usize::from(self.take::<1>()?[0])
        } else {
            u32::from_le_bytes(self.take()?) as usize
        };
        let top = self.top()?;
        if at > self.memo.len() {
            return Err(broken());
        }
        if at == self.memo.len() {
            self.memo.push(top)
        } else {
            self.memo[at] = top
        }
        Ok(())
    }

    fn get(&mut self, at: usize) -> Result<(), String> {
        let place = *self.memo.get(at).ok_or_else(broken)?;
        self.stack.push(place);
        Ok(())
    }

    fn add(&mut self, more: &[Place]) -> Result<(), String> {
        let top = self.top()?;
        match &mut self.things[top] {
            Thing::Many(many) => many.extend(more),
            _ => return Err(broken()),
        }
        Ok(())
    }

    fn set(&mut self, more: &[(Place, Place)]) -> Result<(), String> {
        let top = self.top()?;
        match &mut self.things[top] {
            Thing::Pairs(pairs) => pairs.extend(more),
            _ => return Err(broken()),
        }
        Ok(())
    }

    fn push(&mut self, thing: Thing) {
        self.stack.push(self.things.len());
        self.things.push(thing);
    }

    fn pop(&mut self) -> Result<Place, String> {
        self.stack.pop().ok_or_else(broken)
    }

    fn top(&self) -> Result<Place, String> {
        self.stack.last().copied().ok_or_else(broken)
    }

    fn since_mark(&mut self) -> Result<Vec<Place>, String> {
        let mark = self.marks.pop().filter(|mark| *mark <= self.stack.len()).ok_or_else(broken)?;
        Ok(self.stack.split_off(mark))
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or("it ends too early")?;
        self.rest = rest;
        Ok(*taken)
    }

    fn bytes(&mut self, len: usize) -> Result<Vec<u8>, String> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or("it ends too early")?;
        self.rest = rest;
        Ok(taken.to_vec())
    }

    /// Bytes after their length, in one, four or eight bytes.
    fn counted(&mut self, code: u8, [short, usual, _]: [u8; 3]) -> Result<Vec<u8>, String> {
        let len = if code == short {
            u64::from(self.take::<1>()?[0])
        } else if code == usual {
            u64::from(u32::from_le_bytes(self.take()?))
        } else {
            u64::from_le_bytes(self.take()?)
        };
        self.bytes(usize::try_from(len).map_err(|_| broken())?)
    }

    /// A whole number of up to eight bytes, with a sign.
    fn long(&mut self) -> Result<Value, String> {
        let [len] = self.take()?;
        let bytes = self.bytes(len.into())?;
        let is_negative = bytes.last().is_some_and(|last| last & 0x80 != 0);
        let mut wide = [if is_negative { 0xff } else { 0 }; 8];
        wide.get_mut(..bytes.len()).ok_or("its number is too large")?.copy_from_slice(&bytes);
        Ok(i64::from_le_bytes(wide).into())
    }

    fn line(&mut self) -> Result<String, String> {
        let end = self.rest.iter().position(|byte| *byte == b'\n').ok_or("it ends too early")?;
        let line = self.bytes(end)?;
        self.take::<1>()?;
        String::from_utf8(line).map_err(|_| "its text is no UTF-8".to_owned())
    }

    fn text(&self, at: Place) -> Result<&str, String> {
        match &self.things[at] {
            Thing::Plain(Value::String(text)) => Ok(text),
            _ => Err(broken()),
        }
    }

    // ---- what it means ----

    fn json(&mut self, at: Place, depth: usize) -> Result<Value, String> {
        self.told += 1;
        if depth > DEPTH_MAX || self.told > VALUES_MAX {
            return Err("it is too large".to_owned());
        }
        let next = depth + 1;
        match &self.things[at] {
            Thing::Plain(value) => Ok(value.clone()),
            Thing::Bytes(_) => Err("it has bytes, which JSON cannot say".to_owned()),
            Thing::Named(name) => Ok(name.clone().into()),
            Thing::Many(many) => {
                let many = many.clone();
                many.into_iter().map(|one| self.json(one, next)).collect()
            }
            Thing::Pairs(pairs) => {
                let pairs = pairs.clone();
                self.pairs(&pairs, false, next)
            }
            Thing::Object { state: None } => Ok(Value::Null),
            Thing::Object { state: Some(state) } => {
                let state = *state;
                match self.state(state) {
                    Some(pairs) => self.pairs(&pairs, true, next),
                    None => self.json(state, next),
                }
            }
            Thing::Called { by, with } => {
                let (by, with) = (*by, *with);
                if let Some(time) = self.time(by, with) {
                    return Ok(time.into());
                }
                match self.json(with, next)? {
                    Value::Array(mut all) if all.len() == 1 => Ok(all.remove(0)),
                    all => Ok(all),
                }
            }
        }
    }

    fn pairs(&mut self, pairs: &[(Place, Place)], is_state: bool, depth: usize) -> Result<Value, String> {
        let mut object = Map::new();
        for (key, value) in pairs {
            let key = match &self.things[*key] {
                Thing::Plain(Value::String(text)) => text.clone(),
                Thing::Plain(other) => other.to_string(),
                _ => return Err("a key of it is no text".to_owned()),
            };
            if !(is_state && key.starts_with('_')) {
                object.insert(key, self.json(*value, depth)?);
            }
        }
        Ok(Value::Object(object))
    }

    /// The attributes of an object: its state, or what pydantic keeps under `__dict__` in it.
    fn state(&self, at: Place) -> Option<Vec<(Place, Place)>> {
        let Thing::Pairs(pairs) = &self.things[at] else { return None };
        let is_dict =
            |key: Place| matches!(&self.things[key], Thing::Plain(Value::String(text)) if text == "__dict__");
        match pairs.iter().find(|(key, _)| is_dict(*key)) {
            Some((_, inner)) => self.state(*inner),
            None => Some(pairs.clone()),
        }
    }

    /// A time as Python's `isoformat` has it.
    fn time(&self, by: Place, with: Place) -> Option<String> {
        let (Thing::Named(name), Thing::Many(with)) = (&self.things[by], &self.things[with]) else {
            return None;
        };
        let bytes = |at: &Place| match &self.things[*at] {
            Thing::Bytes(bytes) => Some(bytes.as_slice()),
            _ => None,
        };
        match (name.as_str(), with.as_slice()) {
            ("datetime.date", [date]) => match bytes(date)? {
                [century, year, month, day] => {
                    Some(format!("{:04}-{month:02}-{day:02}", u16::from_be_bytes([*century, *year])))
                }
                _ => None,
            },
            ("datetime.datetime", [time, zone @ ..]) => match bytes(time)? {
                [century, year, month, day, hour, minute, second, micros @ ..] => {
                    let [a, b, c] = *micros else { return None };
                    let micros = u32::from_be_bytes([0, a, b, c]);
                    let part = if micros == 0 { String::new() } else { format!(".{micros:06}") };
                    let zone = zone.first().map_or(Some(String::new()), |zone| self.offset(*zone))?;
                    let year = u16::from_be_bytes([*century, *year]);
                    // The highest bit of the month says which of two times of a clock that is set back it is.
                    let month = month & 0x7f;
                    Some(format!(
                        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{part}{zone}"
                    ))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// `+01:00`, of `timezone(timedelta(days, seconds, microseconds))`.
    fn offset(&self, at: Place) -> Option<String> {
        let with = |at: Place, name: &str| match &self.things[at] {
            Thing::Called { by, with } => match (&self.things[*by], &self.things[*with]) {
                (Thing::Named(named), Thing::Many(with)) if named == name => Some(with.clone()),
                _ => None,
            },
            _ => None,
        };
        let delta = with(*with(at, "datetime.timezone")?.first()?, "datetime.timedelta")?;
        let number = |at: &Place| match &self.things[*at] {
            Thing::Plain(value) => value.as_i64(),
            _ => None,
        };
        let seconds = number(delta.first()?)? * 86_400 + number(delta.get(1)?)?;
        let (sign, seconds) = (if seconds < 0 { '-' } else { '+' }, seconds.abs());
        Some(format!("{sign}{:02}:{:02}", seconds / 3_600, seconds / 60 % 60))
    }
}

fn pairs(flat: &[Place]) -> Vec<(Place, Place)> {
    flat.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

fn broken() -> String {
    "it is no whole pickle".to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `pickle.dumps({"a": [1, -2, 2**40, 1.5, None, True], "b": ("x", {"y"})}, protocol)`.
    const PLAIN: [&[u8]; 2] = [
        b"\x80\x02}q\x00(X\x01\x00\x00\x00aq\x01]q\x02(K\x01J\xfe\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01G?\xf8\x00\x00\x00\x00\x00\x00N\x88eX\x01\x00\x00\x00bq\x03X\x01\x00\x00\x00xq\x04c__builtin__\x0aset\x0aq\x05]q\x06X\x01\x00\x00\x00yq\x07a\x85q\x08Rq\x09\x86q\x0au.",
        b"\x80\x05\x959\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x01a\x94]\x94(K\x01J\xfe\xff\xff\xff\x8a\x06\x00\x00\x00\x00\x00\x01G?\xf8\x00\x00\x00\x00\x00\x00N\x88e\x8c\x01b\x94\x8c\x01x\x94\x8f\x94(\x8c\x01y\x94\x90\x86\x94u.",
    ];

    #[test]
    fn plain_values_are_what_they_are() {
        for bytes in PLAIN {
            let expect = json!({ "a": [1, -2, 1_099_511_627_776_i64, 1.5, null, true], "b": ["x", ["y"]] });
            assert_eq!(json(bytes), Ok(expect));
        }
    }

    #[test]
    fn objects_are_their_state_and_times_are_text() {
        let expect = json!({
            "headers": { "id": "e1", "time": "2026-11-23T14:02:28.499879+00:00", "deadline": null },
            "again": { "id": "e1", "time": "2026-11-23T14:02:28.499879+00:00", "deadline": null },
        });
        assert_eq!(json(b"\x80\x05\x95-\x01\x00\x00\x00\x00\x00\x00\x8c\x04shop\x94\x8c\x04Meta\x94\x93\x94)\x81\x94}\x94(\x8c\x08__dict__\x94}\x94(\x8c\x07headers\x94h\x02)\x81\x94}\x94(h\x05}\x94(\x8c\x02id\x94\x8c\x02e1\x94\x8c\x04time\x94\x8c\x08datetime\x94\x8c\x08datetime\x94\x93\x94C\x0a\x07\xea\x0b\x17\x0e\x02\x1c\x07\xa0\xa7\x94h\x0e\x8c\x08timezone\x94\x93\x94h\x0e\x8c\x09timedelta\x94\x93\x94K\x00K\x00K\x00\x87\x94R\x94\x85\x94R\x94\x86\x94R\x94\x8c\x08deadline\x94N\x8c\x0c_initialized\x94\x88u\x8c\x12__pydantic_extra__\x94N\x8c\x17__pydantic_fields_set__\x94\x8f\x94(\x8c\x01x\x94\x90\x8c\x14__pydantic_private__\x94Nub\x8c\x05again\x94h\x08uh\x1eNh\x1f\x8f\x94(h!\x90h\"Nub."), Ok(expect));
    }

    #[test]
    fn what_is_cut_off_or_rubbish_or_a_bomb_says_so_and_nothing_is_run() {
        for end in 0..PLAIN[1].len() {
            assert!(json(&PLAIN[1][..end]).is_err(), "{end}");
        }
        assert_eq!(json(b"\x80\x02cos\nsystem\nX\x02\x00\x00\x00ls\x85R."), Ok("ls".into()));
        assert!(json(b"\x80\x05\xff.").is_err_and(|why| why.contains("0xff")));
        // Ten lists, each of ten of the one before.
        let mut bomb = b"\x80\x04]\x94".to_vec();
        for at in 0_u8..10 {
            bomb.extend(b"](");
            bomb.extend([b'h', at].repeat(10));
            bomb.extend(b"e\x94");
        }
        bomb.push(b'.');
        assert_eq!(json(&bomb), Err("it is too large".to_owned()));
    }
}
