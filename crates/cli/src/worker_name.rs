//! What a worker calls itself when nobody says how: for people who see who holds a message.

/// Longest name that the broker takes, bytes.
const LEN_MAX: usize = 200;

/// `HOST:PID`.
pub(crate) fn own() -> String {
    let system = rustix::system::uname();
    let host: String = system.nodename().to_string_lossy().chars().filter(|c| !c.is_control()).collect();
    format!("{host}:{}", std::process::id())
}

/// A name that was given.
pub(crate) fn given(text: &str) -> Result<String, String> {
    let fits = !text.is_empty() && text.len() <= LEN_MAX && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned()).ok_or_else(|| format!("1 to {LEN_MAX} bytes without control characters"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_this_process_is_one_that_may_be_given() {
        assert_eq!(given(&own()), Ok(own()));
        assert!(own().ends_with(&format!(":{}", std::process::id())));
        assert!(given("").is_err() && given("a\nb").is_err() && given(&"x".repeat(201)).is_err());
    }
}
