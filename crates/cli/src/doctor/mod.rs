//! What `overtake doctor` finds: what is there, what a confirmed message survives with it, and what else there is to say.

pub(crate) mod servers;
pub(crate) mod store;

use overtake_valkey::cluster::{Finding, Holds, Promise, Weight};
use serde_json::{Value, json};

use crate::failure::Exit;
use crate::out::{BAD, HEAD, RESET};
use crate::table::{Side, Table};

/// What was found.
pub(crate) struct Report {
    /// The kind of the engine, as the setting says it.
    pub(crate) engine: &'static str,
    /// What is there, for programs: the fields of the answer besides those that each has.
    pub(crate) there: Value,
    /// What is there, for people.
    pub(crate) picture: String,
    /// What a confirmed message survives.
    pub(crate) promises: Vec<Promise>,
    /// What else there is to say.
    pub(crate) findings: Vec<Finding>,
}

impl Report {
    /// Whether all is as it should be; `None` where that cannot be told, and nothing is known to be wrong.
    fn holds(&self) -> Option<bool> {
        let is_wrong = self.findings.iter().any(|finding| finding.weight == Weight::Wrong);
        let any = |holds| self.promises.iter().any(|promise| promise.holds == holds);
        match (is_wrong || any(Holds::No), any(Holds::Unknown)) {
            (true, _) => Some(false),
            (false, true) => None,
            (false, false) => Some(true),
        }
    }

    pub(crate) fn exit(&self) -> Exit {
        match self.holds() {
            Some(true) => Exit::Done,
            Some(false) => Exit::Error,
            None => Exit::Usage,
        }
    }

    pub(crate) fn as_json(&self) -> Value {
        let promise = |promise: &Promise| {
            let holds = match promise.holds {
                Holds::Yes => Some(true),
                Holds::No => Some(false),
                Holds::Unknown => None,
            };
            json!({ "survives": promise.event.word(), "holds": holds, "why": promise.why })
        };
        let finding = |finding: &Finding| json!({ "weight": word(finding.weight), "text": finding.text });
        let mut all = json!({
            "engine": self.engine,
            "holds": self.holds(),
            "promises": self.promises.iter().map(promise).collect::<Vec<_>>(),
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
        });
        if let (Value::Object(all), Value::Object(there)) = (&mut all, &self.there) {
            all.extend(there.clone());
        }
        all
    }

    pub(crate) fn as_text(&self) -> String {
        let mut promises = Table::new(&[
            ("A CONFIRMED MESSAGE SURVIVES", Side::Left),
            ("", Side::Left),
            ("BECAUSE", Side::Left),
        ]);
        for promise in &self.promises {
            let holds = match promise.holds {
                Holds::Yes => "yes",
                Holds::No => "NO",
                Holds::Unknown => "?",
            };
            promises.row(vec![promise.event.to_string(), holds.to_owned(), promise.why.clone()]);
        }
        let mut text = format!("{}\n{}", self.picture, promises.text());
        if !self.findings.is_empty() {
            text.push_str(&format!("\n{HEAD}BESIDES{RESET}\n"));
        }
        for finding in &self.findings {
            match finding.weight {
                Weight::Wrong => text.push_str(&format!("{BAD}wrong:{RESET} {finding}\n")),
                Weight::Weak => text.push_str(&format!("weak: {finding}\n")),
                Weight::Fine => text.push_str(&format!("{finding}\n")),
            }
        }
        text
    }
}

fn word(weight: Weight) -> &'static str {
    match weight {
        Weight::Fine => "fine",
        Weight::Weak => "weak",
        Weight::Wrong => "wrong",
    }
}

#[cfg(test)]
mod tests {
    use overtake_valkey::cluster::Event;

    use super::*;

    #[test]
    fn what_is_wrong_goes_before_what_cannot_be_told() {
        let exit = |holds: &[Holds], weights: &[Weight]| {
            let promise =
                |holds: &Holds| Promise { event: Event::Failover, holds: *holds, why: String::new() };
            let finding = |weight: &Weight| Finding { weight: *weight, text: String::new() };
            let report = Report {
                engine: "cluster",
                there: Value::Null,
                picture: String::new(),
                promises: holds.iter().map(promise).collect(),
                findings: weights.iter().map(finding).collect(),
            };
            report.exit() as u8
        };
        assert_eq!(exit(&[Holds::Yes], &[Weight::Fine, Weight::Weak]), 0);
        assert_eq!(exit(&[Holds::Yes, Holds::Unknown], &[]), 2);
        assert_eq!(exit(&[Holds::Unknown, Holds::No], &[]), 1);
        assert_eq!(exit(&[Holds::Yes, Holds::Unknown], &[Weight::Wrong]), 1);
    }
}
