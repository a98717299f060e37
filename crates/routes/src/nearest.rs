//! "Did you mean": the known word that is nearest to one that is not.

/// Longer words are not looked at.
const WORD_LEN_MAX: usize = 40;

/// A beginning of a word that is as long tells which.
const BEGUN_LEN_MIN: usize = 5;

/// The word that was probably meant, whatever its case. `None` when nothing is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > WORD_LEN_MAX {
        return None;
    }
    let word = word.to_lowercase();
    let slips_max = (word.chars().count() / 3).clamp(1, 3);
    let near = known.into_iter().map(|known| {
        let lower = known.to_lowercase();
        // A word that was not finished.
        let is_begun = word.len() >= BEGUN_LEN_MIN && lower.starts_with(&word);
        (if is_begun { 1 } else { slips(&word, &lower) }, known)
    });
    near.filter(|(slips, _)| *slips <= slips_max).min_by_key(|(slips, _)| *slips).map(|(_, known)| known)
}

/// A hint that names the nearest word.
pub fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|known| format!("did you mean `{known}`?"))
}

/// Letters to change, add, leave out or swap with the next. (Optimal string alignment.)
fn slips(from: &str, to: &str) -> usize {
    let (from, to) = (from.chars().collect::<Vec<_>>(), to.chars().collect::<Vec<_>>());
    let mut rows = vec![(0..=to.len()).collect::<Vec<_>>()];
    for i in 1..=from.len() {
        let mut row = vec![i];
        for j in 1..=to.len() {
            let changed = rows[i - 1][j - 1] + usize::from(from[i - 1] != to[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_meant() {
        let known = ["concat", "contains", "ceiling", "abs"];
        assert_eq!(nearest("contian", known), Some("contains"));
        assert_eq!(nearest("CONCTA", known), Some("concat"));
        assert_eq!(nearest("celing", known), Some("ceiling"));
        assert_eq!(nearest("ceili", known), Some("ceiling"));
        assert_eq!(nearest("round", known), None);
        assert_eq!(nearest(&"a".repeat(1_000_000), known), None);
    }
}
