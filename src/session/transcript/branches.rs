//! Finds what a user discarded: in Claude Code, a conversation may be rewound and continued from an earlier
//! line, and the lines after it stay in the file.
//!
//! Lines form trees by `parentUuid`. Several lines may continue one line without any rewinding, as parallel
//! tool calls do. So only a prompt that does not lead to the last message of its tree is discarded, with
//! everything that follows from it.

use std::collections::{BTreeSet, HashMap};

/// The lines of the session's own agent, as a forest.
#[derive(Debug, Default)]
pub(super) struct LineTree {
    nodes: Vec<LineNode>,
    by_id: HashMap<String, usize>,
}

#[derive(Debug)]
struct LineNode {
    line: usize,
    parent: Option<usize>,
    is_prompt: bool,
    is_message: bool,
}

impl LineTree {
    /// Adds a line; `is_prompt` if the user typed it, `is_message` if it is a message of anybody.
    pub(super) fn add(
        &mut self,
        line: usize,
        id: &str,
        parent: Option<&str>,
        is_prompt: bool,
        is_message: bool,
    ) {
        let parent = parent.and_then(|it| self.by_id.get(it).copied());
        self.by_id.insert(id.to_owned(), self.nodes.len());
        self.nodes.push(LineNode { line, parent, is_prompt, is_message });
    }

    /// Returns the numbers of the lines that the user discarded.
    pub(super) fn discarded_lines(&self) -> BTreeSet<usize> {
        // A parent precedes its children.
        let mut roots: Vec<usize> = Vec::with_capacity(self.nodes.len());
        let mut last: HashMap<usize, usize> = HashMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let root = node.parent.map_or(at, |it| roots[it]);
            roots.push(root);
            if node.is_message {
                last.insert(root, at);
            }
        }
        let mut leads_to_end = vec![false; self.nodes.len()];
        for mut at in last.into_values().map(Some) {
            while let Some(node) = at {
                leads_to_end[node] = true;
                at = self.nodes[node].parent;
            }
        }
        let mut is_discarded: Vec<bool> = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            let follows = node.parent.is_some_and(|it| is_discarded[it]);
            is_discarded.push(follows || node.is_prompt && !leads_to_end[at]);
        }
        let nodes = self.nodes.iter().zip(is_discarded);
        nodes.filter(|(_, is_discarded)| *is_discarded).map(|(node, _)| node.line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `lines` holds the id, the parent, and the kind: `u` for a prompt, `m` for another message, `-` else.
    #[track_caller]
    fn check(lines: &[(&str, &str, char)], discarded: &[usize]) {
        let mut tree = LineTree::default();
        for (n, (id, parent, kind)) in lines.iter().enumerate() {
            tree.add(n + 1, id, Some(parent), *kind == 'u', matches!(kind, 'u' | 'm'));
        }
        assert_eq!(tree.discarded_lines().into_iter().collect::<Vec<_>>(), discarded);
    }

    #[test]
    fn a_prompt_that_was_rewound_is_discarded_with_what_follows() {
        let rewound = [("a", "", 'u'), ("b", "a", 'm'), ("c", "b", 'u'), ("d", "c", 'm')];
        check(&rewound, &[]);
        check(&[&rewound[..], &[("e", "b", 'u'), ("f", "e", 'm')]].concat(), &[3, 4]);
        // The prompt was attached to a line of the program.
        check(&[("a", "", 'u'), ("s", "a", '-'), ("b", "s", 'u'), ("c", "a", 'u')], &[3]);
        // Parallel calls and their results, and a line of the program at the end.
        let parallel = [("a", "", 'u'), ("b", "a", 'm'), ("c", "b", 'm'), ("r", "b", 'm')];
        check(&[&parallel[..], &[("t", "c", 'm'), ("d", "t", 'm'), ("x", "a", '-')]].concat(), &[]);
        // Trees without a common line are parts of one session.
        check(&[("a", "", 'u'), ("b", "a", 'm'), ("c", "gone", 'u'), ("d", "c", 'm')], &[]);
    }
}
