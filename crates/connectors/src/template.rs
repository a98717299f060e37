//! Names with places in them that each message fills, as `jobs/{priority}`.

/// A part of such a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece<F> {
    /// Text that stands as it is.
    Text(String),
    /// A place that the message fills.
    Field(F),
}

/// The parts of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template<F>(Vec<Piece<F>>);

impl<F: Copy> Template<F> {
    /// Reads a name whose places are among these.
    ///
    /// # Errors
    /// The flaw, as a phrase.
    pub(crate) fn parse(text: &str, fields: &[(&str, F)]) -> Result<Self, String> {
        let text_of = |text: &str| (!text.is_empty()).then(|| Piece::Text(text.to_owned()));
        let (mut pieces, mut rest) = (Vec::new(), text);
        while let Some((before, after)) = rest.split_once('{') {
            let (name, behind) =
                after.split_once('}').ok_or_else(|| format!("a `{{` of `{text}` has no `}}`"))?;
            let field = fields.iter().find(|(known, _)| *known == name).ok_or_else(|| {
                let all: Vec<String> = fields.iter().map(|(name, _)| format!("{{{name}}}")).collect();
                format!("there is no {{{name}}}, only {}", all.join(", "))
            })?;
            pieces.extend(text_of(before));
            pieces.push(Piece::Field(field.1));
            rest = behind;
        }
        pieces.extend(text_of(rest));
        Ok(Self(pieces))
    }

    /// Its texts, without the places.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Field(_) => None,
        })
    }

    /// Its places.
    pub(crate) fn fields(&self) -> impl Iterator<Item = F> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Field(field) => Some(*field),
        })
    }

    /// The name with what a message says in its places.
    ///
    /// # Errors
    /// The first of `said`.
    pub(crate) fn fill<E>(&self, mut said: impl FnMut(F) -> Result<String, E>) -> Result<String, E> {
        let mut name = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => name.push_str(text),
                Piece::Field(field) => name.push_str(&said(*field)?),
            }
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_text_with_places() {
        let fields = [("queue", 'q'), ("key", 'k')];
        let name = |text: &str| {
            let template = Template::parse(text, &fields)?;
            template
                .fill(|field| if field == 'q' { Ok("orders".to_owned()) } else { Err("no key".to_owned()) })
        };
        for (text, filled) in [
            ("plain", "plain"),
            ("", ""),
            ("{queue}", "orders"),
            ("a.{queue}-{queue}.z", "a.orders-orders.z"),
        ] {
            assert_eq!(name(text), Ok(filled.to_owned()));
        }
        assert_eq!(name("a/{key}"), Err("no key".to_owned()));
        assert_eq!(name("a/{lane"), Err("a `{` of `a/{lane` has no `}`".to_owned()));
        assert_eq!(name("a/{color}"), Err("there is no {color}, only {queue}, {key}".to_owned()));
    }
}
