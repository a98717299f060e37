//! What differs between the databases, as far as writing goes.

/// Whose SQL it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// PostgreSQL.
    Postgres,
    /// MySQL and MariaDB.
    MySql,
    /// SQLite.
    Sqlite,
}

impl Dialect {
    /// A name as it stands in a statement, whatever is in it.
    #[must_use]
    pub fn quote(self, name: &str) -> String {
        let quote = if self == Self::MySql { '`' } else { '"' };
        format!("{quote}{}{quote}", name.replace(quote, &format!("{quote}{quote}")))
    }

    /// `NAME`, or `SCHEMA.NAME`, part by part.
    #[must_use]
    pub fn quote_path(self, path: &str) -> String {
        path.split('.').map(|part| self.quote(part)).collect::<Vec<_>>().join(".")
    }

    /// Where argument `number` stands, from 1.
    #[must_use]
    pub fn placeholder(self, number: usize) -> String {
        if self == Self::Postgres { format!("${number}") } else { "?".to_owned() }
    }
}

/// Looks at the name of a column or a part of a table's: what every database takes.
///
/// # Errors
/// What is wrong with it, as a phrase.
pub fn check_identifier(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("a name is not empty".to_owned());
    }
    if name.len() > 63 {
        return Err(format!("`{name}` is longer than 63 bytes, which PostgreSQL would cut off"));
    }
    match name.chars().find(|c| c.is_control() || matches!(c, '"' | '`' | '\'' | '.' | '\\' | ';')) {
        Some(c) => Err(format!("`{}` has {c:?} in it, which no name needs", name.escape_debug())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_where_it_ends() {
        assert_eq!(Dialect::Postgres.quote(r#"a"; DROP TABLE b; --"#), r#""a""; DROP TABLE b; --""#);
        assert_eq!(Dialect::MySql.quote("a`b"), "`a``b`");
        assert_eq!(Dialect::Sqlite.quote_path("main.outbox"), r#""main"."outbox""#);
        assert!(check_identifier("metadata_").is_ok() && check_identifier("späte Zeit").is_ok());
        assert!(
            ["", "a.b", "a\"b", "a\n", &"x".repeat(64)].into_iter().all(|bad| check_identifier(bad).is_err())
        );
    }
}
