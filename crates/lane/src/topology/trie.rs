//! Topic patterns by their words, so that a message looks only at those that begin as its key does.
//!
//! All nodes that the words so far lead to are followed at once, each once: a key costs at most its words × the nodes, whatever
//! the patterns. Nodes are numbered and not nested, so nothing recurses. Invariant: only the root has neither binding nor child.

use std::collections::BTreeMap;
use std::sync::Arc;

use smallvec::SmallVec;

use super::binding::{Binding, Bindings};

const ANY_WORD: &str = "*";
const ANY_WORDS: &str = "#";
const ROOT: u32 = 0;

/// Bindings by pattern.
#[derive(Clone, Debug)]
pub(super) struct Trie {
    nodes: Vec<Node>,
    free: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct Node {
    children: BTreeMap<Box<str>, u32>,
    /// It stands for any number of words, so what leads to it leads to it again.
    is_any_words: bool,
    bindings: Bindings,
}

/// The nodes that are followed.
type Active = SmallVec<[u32; 8]>;

impl Default for Trie {
    fn default() -> Self {
        Self { nodes: vec![Node::default()], free: Vec::new() }
    }
}

impl Trie {
    pub(super) fn insert(&mut self, binding: &Arc<Binding>) {
        let mut at = ROOT;
        for word in pattern(&binding.routing_key) {
            at = match self.nodes[at as usize].children.get(word) {
                Some(child) => *child,
                None => self.grow(at, word),
            };
        }
        self.nodes[at as usize].bindings.insert(Arc::clone(binding));
    }

    fn grow(&mut self, parent: u32, word: &str) -> u32 {
        let at = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 words are bound")
        });
        self.nodes[at as usize].is_any_words = word == ANY_WORDS;
        self.nodes[parent as usize].children.insert(word.into(), at);
        at
    }

    /// # Panics
    /// When it is not there.
    pub(super) fn remove(&mut self, binding: &Binding) {
        let mut path: Vec<(u32, &str)> = Vec::new();
        let mut at = ROOT;
        for word in pattern(&binding.routing_key) {
            path.push((at, word));
            at = self.nodes[at as usize].children[word];
        }
        self.nodes[at as usize].bindings.remove(binding);
        while let Some((parent, word)) = path.pop() {
            let node = &self.nodes[at as usize];
            if !node.bindings.is_empty() || !node.children.is_empty() {
                break;
            }
            self.nodes[parent as usize].children.remove(word);
            self.free.push(at);
            at = parent;
        }
    }

    /// Names each binding whose pattern takes the key, once.
    pub(super) fn find<'a>(&'a self, key: &str, mut found: impl FnMut(&'a Binding)) {
        let mut active = Active::new();
        self.enter(ROOT, &mut active);
        for word in words(key) {
            let mut next = Active::new();
            for at in &active {
                self.follow(*at, word, &mut next);
            }
            next.sort_unstable();
            next.dedup();
            active = next;
        }
        for at in active {
            self.nodes[at as usize].bindings.iter().for_each(|binding| found(binding));
        }
    }

    fn follow(&self, at: u32, word: &str, next: &mut Active) {
        let node = &self.nodes[at as usize];
        if node.is_any_words {
            next.push(at);
        }
        // A key may have these words too; they lead where the pattern leads anyway.
        for child in [node.children.get(word), node.children.get(ANY_WORD)].into_iter().flatten() {
            self.enter(*child, next);
        }
    }

    /// Follows a node, and that of no words after it.
    fn enter(&self, at: u32, active: &mut Active) {
        active.push(at);
        active.extend(self.nodes[at as usize].children.get(ANY_WORDS).copied());
    }
}

/// The words of a pattern; one `#` after another says nothing more.
fn pattern(text: &str) -> impl Iterator<Item = &str> {
    let mut was_any_words = false;
    words(text).filter(move |word| {
        let is_any_words = *word == ANY_WORDS;
        !std::mem::replace(&mut was_any_words, is_any_words) || !is_any_words
    })
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split('.').take(if text.is_empty() { 0 } else { usize::MAX })
}

/// Whether a topic pattern takes a routing key: words between dots, `*` one word, `#` none or more.
///
/// Walks both once and goes back only to the last `#`, so a hostile pattern costs words × words at most.
#[must_use]
pub fn topic_matches(pattern: &str, routing_key: &str) -> bool {
    let pattern: Vec<&str> = words(pattern).collect();
    let key: Vec<&str> = words(routing_key).collect();
    let (mut p, mut k) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while k < key.len() {
        match pattern.get(p) {
            Some(&ANY_WORDS) => {
                retry = Some((p, k));
                p += 1;
            }
            Some(&word) if word == ANY_WORD || word == key[k] => {
                p += 1;
                k += 1;
            }
            _ => match retry {
                Some((hash, taken)) => {
                    retry = Some((hash, taken + 1));
                    (p, k) = (hash + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|word| *word == ANY_WORDS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::super::binding::Destination;
    use super::*;

    #[test]
    fn a_topic_pattern_takes_words() {
        for (pattern, key, expect) in [
            ("a.b", "a.b", true),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("a.#", "a", true),
            ("a.#", "a.b.c", true),
            ("#", "", true),
            ("#", "a.b", true),
            ("*", "", false),
            ("", "", true),
            ("#.b", "a.b.b", true),
            ("#.b.#.c", "b.x.b.c", true),
            ("#.b.#.c", "b.x.b.d", false),
            ("*.#.*", "a", false),
            ("*.#.*", "a.b", true),
        ] {
            assert_eq!(topic_matches(pattern, key), expect, "{pattern} {key}");
            let mut trie = Trie::default();
            trie.insert(&binding(pattern));
            assert_eq!(!found(&trie, key).is_empty(), expect, "{pattern} {key}");
        }
    }

    fn binding(pattern: &str) -> Arc<Binding> {
        Arc::new(Binding::new("x", Destination::Queue("q".into()), pattern))
    }

    fn found(trie: &Trie, key: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        trie.find(key, |binding| assert!(found.insert(binding.routing_key.clone()), "each is named once"));
        found
    }

    fn texts(words: &'static str) -> impl Strategy<Value = String> {
        prop::collection::vec(prop::sample::select(words.chars().collect::<Vec<_>>()), 0..7)
            .prop_map(|words| words.iter().map(char::to_string).collect::<Vec<_>>().join("."))
    }

    proptest! {
        #[test]
        fn a_trie_finds_what_matches_and_forgets_what_is_removed(
            patterns in prop::collection::btree_set(texts("aab*##"), 0..20),
            removed in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
            keys in prop::collection::vec(texts("aaabbc*#"), 1..8),
        ) {
            let (mut trie, mut left) = (Trie::default(), patterns.clone());
            patterns.iter().for_each(|pattern| trie.insert(&binding(pattern)));
            for index in removed {
                if !left.is_empty() {
                    let pattern = left.iter().nth(index.index(left.len())).cloned().expect("within bounds");
                    left.remove(&pattern);
                    trie.remove(&binding(&pattern));
                }
            }
            for key in keys {
                let expect = left.iter().filter(|pattern| topic_matches(pattern, &key)).cloned().collect();
                prop_assert_eq!(found(&trie, &key), expect);
            }
            left.iter().for_each(|pattern| trie.remove(&binding(pattern)));
            prop_assert_eq!(trie.nodes.len(), trie.free.len() + 1, "nothing is left of what was removed");
        }
    }

    #[test]
    fn patterns_of_many_any_words_cost_words_times_nodes() {
        let mut trie = Trie::default();
        for first in 0..50 {
            trie.insert(&binding(&format!("{first}{}", ".#.a.*".repeat(40))));
            trie.insert(&binding(&format!("{}{first}", "#.a.".repeat(60))));
        }
        assert!(found(&trie, &"a.".repeat(120)).is_empty());
    }
}
