//! Routes from one source, by what they certainly want.
//!
//! Most conditions are, or begin with, `property = 'text'`. Where the property says another text the whole is false, since false wins an
//! AND; so one look at the property leaves out all routes that want other texts. What is not decided so is evaluated: the result
//! never differs from evaluating every route.

use std::collections::HashMap;

use super::RouteId;
use super::conjunction::Conjunction;
use crate::condition::Truth;
use crate::evaluate::Lookup;
use crate::names::{NameId, Names};
use crate::value::Value;

/// Routes from one source.
#[derive(Default)]
pub(super) struct Group {
    without_condition: Vec<RouteId>,
    /// Those that have no pivot.
    others: Vec<RouteId>,
    pivots: Vec<Pivot>,
}

/// Routes that want a text of one property.
struct Pivot {
    property: NameId,
    by_text: HashMap<Box<str>, Vec<RouteId>>,
    all: Vec<RouteId>,
}

impl Group {
    pub(super) fn add(&mut self, route: RouteId, condition: Option<&mut Conjunction>, names: &Names) {
        let Some(condition) = condition else { return self.without_condition.push(route) };
        let Some((property, text)) = condition.take_pivot(names) else { return self.others.push(route) };
        let at = self.pivots.iter().position(|pivot| pivot.property == property).unwrap_or_else(|| {
            self.pivots.push(Pivot { property, by_text: HashMap::new(), all: Vec::new() });
            self.pivots.len() - 1
        });
        let pivot = &mut self.pivots[at];
        pivot.by_text.entry(text).or_default().push(route);
        pivot.all.push(route);
    }

    pub(super) fn without_condition(&self) -> &[RouteId] {
        &self.without_condition
    }

    /// Each route whose condition may be something else than false, and what its pivot came to.
    pub(super) fn each_candidate(&self, lookup: &impl Lookup, mut look: impl FnMut(RouteId, Truth)) {
        for pivot in &self.pivots {
            let (candidates, truth) = match lookup.value(pivot.property) {
                Value::Text(text) => (pivot.by_text.get(text).map_or(&[][..], Vec::as_slice), Truth::True),
                // The comparison is undefined, and the rest may still be false.
                Value::Undefined => (&pivot.all[..], Truth::Undefined),
                // The comparison is false, and so is the whole.
                _ => (&[][..], Truth::False),
            };
            candidates.iter().for_each(|route| look(*route, truth));
        }
        self.others.iter().for_each(|route| look(*route, Truth::True));
    }
}
