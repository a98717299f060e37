//! Rust source with its comments and literals blanked, so that a guard looks at code and not at talk about code.

/// The same text, line for line, with spaces in place of comments, strings and characters.
pub(crate) fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let mut previous = ' ';
    while let Some(next) = rest.chars().next() {
        let len = talk(rest, previous);
        let (piece, tail) = rest.split_at(if len == 0 { next.len_utf8() } else { len });
        if len == 0 {
            code.push_str(piece);
        } else {
            code.extend(piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        }
        previous = piece.chars().last().expect("a piece has a character");
        rest = tail;
    }
    code
}

/// Length in bytes of the comment or literal that starts here; 0 when code does.
fn talk(text: &str, previous: char) -> usize {
    let bytes = text.as_bytes();
    match bytes[0] {
        b'/' if text.starts_with("//") => text.find('\n').unwrap_or(text.len()),
        b'/' if text.starts_with("/*") => block(text),
        b'"' => string(text),
        b'\'' => character(text),
        b'r' | b'b' | b'c' if !is_word(previous) => raw(text),
        _ => 0,
    }
}

/// Block comments nest.
fn block(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let here = &text.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
        } else {
            at += 1;
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// `'a'` and `'\n'`, but not the lifetime `'a`.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        // The escaped character itself may be a quote: look for the closing one after it.
        (Some((_, '\\')), Some((at, c))) => {
            let from = at + c.len_utf8();
            text[from..].find('\'').map_or(text.len(), |end| from + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

/// `r"…"`, `r#"…"#`, `br"…"`, `cr"…"`; 0 for a word that merely starts so, and for `r#type`.
fn raw(text: &str) -> usize {
    let after = text.trim_start_matches(['b', 'c']);
    let Some(after) = after.strip_prefix('r') else { return 0 };
    let hashes = after.len() - after.trim_start_matches('#').len();
    let Some(body) = after[hashes..].strip_prefix('"') else { return 0 };
    let close = format!("\"{}", "#".repeat(hashes));
    let opened = text.len() - body.len();
    body.find(&close).map_or(text.len(), |end| opened + end + close.len())
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, kept: &[&str]) {
        let code = code_of(text);
        assert_eq!(code.lines().count(), text.lines().count());
        assert_eq!(code.split_whitespace().collect::<Vec<_>>(), kept);
    }

    #[test]
    fn comments_go() {
        check("a // b\nc /* d /* e */ f\n */ g /// h", &["a", "c", "g"]);
    }

    #[test]
    fn strings_go() {
        check(r#"a "b \" c" d"#, &["a", "d"]);
        check("a r#\"b \" c\"# d br\"e\" f", &["a", "d", "f"]);
        check("a \"unfinished", &["a"]);
    }

    #[test]
    fn characters_go_and_lifetimes_stay() {
        check("a '\"' b '\\'' c 'd' &'e str 'é' f", &["a", "b", "c", "&'e", "str", "f"]);
    }

    #[test]
    fn words_that_look_like_the_start_of_a_string_stay() {
        check("r br b c bar r#type", &["r", "br", "b", "c", "bar", "r#type"]);
    }
}
