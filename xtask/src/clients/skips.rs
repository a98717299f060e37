//! What is not run of other people's suites, with a reason each: tests/clients/skips.txt.

use anyhow::{Context, Result};

use crate::shell::say;

const LIST: &str = "tests/clients/skips.txt";

/// A line of the list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Skip {
    /// A file or a test, in the program's own words.
    pub(super) what: String,
    /// Why it is not run.
    pub(super) why: String,
}

/// What is not run of this program; each is printed, for a skip is not a pass.
pub(super) fn of(program: &str) -> Result<Vec<Skip>> {
    let skips = parse(&std::fs::read_to_string(LIST).context(LIST)?, program)?;
    for skip in &skips {
        say(&format!("   not run: {}: {}", skip.what, skip.why));
    }
    Ok(skips)
}

/// `program | file or test | reason`, and comments.
fn parse(list: &str, program: &str) -> Result<Vec<Skip>> {
    let mut skips = Vec::new();
    for (at, line) in list.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
    {
        let cells: Vec<_> = line.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let &[whose, what, why] = cells.as_slice() else {
            anyhow::bail!("{LIST}:{}: a line is: program | file or test | reason", at + 1)
        };
        if whose == program {
            skips.push(Skip { what: what.to_owned(), why: why.to_owned() });
        }
    }
    Ok(skips)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_has_a_reason() {
        let list = "# why\n\na | t.py | speaks to Redis\nb | u | other\n";
        assert_eq!(
            parse(list, "a").unwrap(),
            [Skip { what: "t.py".to_owned(), why: "speaks to Redis".to_owned() }]
        );
        assert!(parse("a | t.py | ", "a").is_err());
        assert!(parse("a | t.py", "b").is_err());
    }
}
