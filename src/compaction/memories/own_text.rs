//! What a person wrote in a memory about a topic.

use std::{collections::BTreeMap, iter::repeat};

use crate::memory::{
    item::Item,
    statement::{self, StatementKind},
    typed::TypedMemory,
};

/// The lines of a memory that are not ours, each in its place: before the first of our headings, below one of them, or
/// from a heading of the person's own on.
///
/// What a person wrote below one of our headings comes after our statements there. A statement of ours with text
/// of theirs below it is theirs.
#[derive(Debug, Default)]
pub(super) struct OwnText {
    head: Vec<String>,
    sections: BTreeMap<StatementKind, Vec<String>>,
    tail: Vec<String>,
}

/// Where a line is.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Head,
    Section(StatementKind),
    Tail,
}

impl OwnText {
    pub(super) fn of(memory: &TypedMemory) -> Self {
        let (ours, _) = memory.statements_by_owner();
        let lines: Vec<&str> = memory.body.lines().collect();
        let is_ours = |at: usize| {
            let has_more = lines
                .get(at + 1)
                .is_some_and(|it| it.starts_with([' ', '\t']) && !it.trim().is_empty());
            !has_more && ours.iter().any(|it| it.line as usize == at + 1)
        };
        let mut own = Self::default();
        let mut place = Place::Head;
        let inert = statement::inert_lines(&memory.body);
        for (at, line) in lines.iter().enumerate() {
            let is_inert = inert.contains(&at);
            let heading = line.strip_prefix("## ").filter(|_| !is_inert);
            let kind = heading.and_then(StatementKind::from_title);
            match kind {
                Some(kind) => {
                    place = Place::Section(kind);
                    continue;
                }
                None if (heading.is_some() || line.starts_with("# ") && !is_inert)
                    && place != Place::Head =>
                {
                    place = Place::Tail;
                }
                None => {}
            }
            let block = own.block(place);
            // A blank line separates what the person wrote.
            if line.trim().is_empty() && !is_inert {
                if block.last().is_some_and(|it| !it.is_empty()) {
                    block.push(String::new());
                }
            } else if !is_ours(at) {
                block.push((*line).to_owned());
            }
        }
        let blocks = own.sections.values_mut().chain([&mut own.head, &mut own.tail]);
        for block in blocks {
            while block.last().is_some_and(String::is_empty) {
                block.pop();
            }
        }
        own.sections.retain(|_, it| !it.is_empty());
        own
    }

    fn block(&mut self, place: Place) -> &mut Vec<String> {
        match place {
            Place::Head => &mut self.head,
            Place::Section(kind) => self.sections.entry(kind).or_default(),
            Place::Tail => &mut self.tail,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.head.is_empty() && self.sections.is_empty() && self.tail.is_empty()
    }

    /// Returns the statements among these lines.
    pub(super) fn statements(&self) -> Vec<(StatementKind, Item)> {
        let lines = self.sections.iter().flat_map(|(kind, it)| it.iter().zip(repeat(*kind)));
        let bullets = lines.filter_map(|(line, kind)| Some((kind, line.strip_prefix("- ")?)));
        bullets.map(|(kind, it)| (kind, Item::parse(it))).collect()
    }

    /// Returns the body with our statements, which are sorted by kind.
    pub(super) fn body_with(&self, statements: &[(StatementKind, Item)]) -> String {
        if self.is_empty() {
            return statement::body_of(statements.iter().map(|(kind, item)| (*kind, item)));
        }
        let mut body = String::new();
        let mut add = |lines: &[String]| {
            if !lines.is_empty() {
                body.extend(["\n", &lines.join("\n"), "\n"]);
            }
        };
        add(&self.head);
        for kind in StatementKind::ALL {
            let ours = statements.iter().filter(|it| it.0 == kind).map(|it| format!("- {}", it.1));
            let mut lines: Vec<String> = ours.collect();
            lines.extend(self.sections.get(&kind).into_iter().flatten().cloned());
            if !lines.is_empty() {
                lines.splice(..0, [format!("## {}", kind.title()), String::new()]);
            }
            add(&lines);
        }
        add(&self.tail);
        body
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const OURS: &str = "---\nname: Pump\ndescription: A pump\ntype: project\n---\n\n## State\n\n\
        - Two valves of steel [2026-04-01:3]\n- Boiler from 1962 [2026-04-02:3]\n";

    fn memory(text: &str) -> TypedMemory {
        let name = Path::new("project_pump.md");
        let mut ours = TypedMemory::parse(name, OURS).unwrap();
        ours.items = ours.statements().iter().map(|it| it.item.hash()).collect();
        TypedMemory { items: ours.items, ..TypedMemory::parse(name, text).unwrap() }
    }

    #[track_caller]
    fn check(edited: &str, new: &[(StatementKind, &str)], expected: &str) {
        let own = OwnText::of(&memory(edited));
        let new: Vec<_> = new.iter().map(|(kind, text)| (*kind, Item::parse(text))).collect();
        assert_eq!(own.body_with(&new), expected, "{edited}");
    }

    #[test]
    fn what_a_person_wrote_stays_in_its_section() {
        const NEW: [(StatementKind, &str); 2] = [
            (StatementKind::State, "Boiler from 1963 [2026-04-03:3]"),
            (StatementKind::Open, "Order a gauge [2026-04-03:4]"),
        ];
        let plain = "\n## State\n\n- Boiler from 1963 [2026-04-03:3]\n\n## Open\n\n- Order a gauge [2026-04-03:4]\n";
        check(OURS, &NEW, plain);
        check(
            &OURS.replace("of steel [2026-04-01:3]", "of brass [2026-04-01:3]"),
            &NEW,
            "\n## State\n\n- Boiler from 1963 [2026-04-03:3]\n- Two valves of brass [2026-04-01:3]\n\n\
             ## Open\n\n- Order a gauge [2026-04-03:4]\n",
        );
        check(
            &format!(
                "{}\n# Mine\n\nSee the plan.\n",
                OURS.replace("type: project\n---\n", "type: project\n---\n\nThe old pump.\n")
            ),
            &NEW[..1],
            "\nThe old pump.\n\n## State\n\n- Boiler from 1963 [2026-04-03:3]\n\n# Mine\n\nSee the plan.\n",
        );
        check(
            &OURS.replace("[2026-04-01:3]\n", "[2026-04-01:3]\n  one is stuck\n"),
            &[],
            "\n## State\n\n- Two valves of steel [2026-04-01:3]\n  one is stuck\n",
        );
    }
}
