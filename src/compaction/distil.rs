//! `WISDOM.md` from months.

use std::collections::BTreeSet;

use super::{
    Compactor, JobError, Made, View, ask,
    commit::{NewFile, Recorded},
    draft::unreadable,
    extract::{held_back, texts},
    fold::count,
    ground::{self, Violation},
    late::Shaken,
    plan::{Job, Reason},
    records,
    review::{self, KeptOut},
};
use crate::{
    config::settings::Review,
    engine::{DistilInput, WisdomOp},
    memory::{
        address::{Address, Citation, LineSet, Stem},
        document::Summary,
        item::{Item, Section},
        log::DailyLog,
        period::Period,
        typed::TypedMemory,
        wisdom::{WisdomCaps, WisdomEntry, WisdomFile},
    },
    privacy::{self, Rules, ServedLog},
    store::{
        inventory::Inventory,
        lineage::{
            jobs::{JobId, Outcome, Receipt},
            record::{DocumentRecord, LogRecord},
        },
    },
};

impl Compactor<'_> {
    /// Edits `WISDOM.md` by what one month says.
    pub(super) fn distil(&mut self, job: &Job, id: JobId, view: &View) -> Result<Made, JobError> {
        let layout = self.vault.layout();
        let (path, month_path) = (layout.wisdom(), layout.summary(job.period));
        let month_text = self
            .vault
            .read_text(&month_path)?
            .ok_or_else(|| JobError::Stale(month_path.clone()))?;
        let month =
            Summary::parse(job.period, &month_text).map_err(|e| unreadable(&month_path, &e))?;
        let Inventory { decisions, rules, .. } = &view.inventory;
        if job.inputs.values().ne([&rules.input_of_file(job.period, &month.body_hash().hex16())]) {
            return Err(JobError::Stale(month_path));
        }
        let logs = self.logs_beneath(job.period, view)?;
        let standing = self.vault.read_text(&path)?;
        let mut file = match &standing {
            Some(text) => WisdomFile::parse(text),
            None => WisdomFile::new(&view.inventory.rules.shown(&self.settings.agent_name)),
        };
        let items = cite_own_lines(&month, &month_text, rules);
        let summaries = self.summaries_cited(&month, &items, &file, rules)?;
        follow_summaries(&mut file, &summaries);
        let shaken = self.shaken(&mut file, &logs, rules)?;
        // An entry that nothing carries must not keep out what may take its place.
        let is_sound = |it: &&WisdomEntry| !shaken.iter().any(|s| it.id() == Some(&s.id));
        let entries: Vec<WisdomEntry> = file.entries().filter(is_sound).cloned().collect();
        let memories = memories_of(job.period, &view.inventory.memories);
        let wisdom = &self.settings.settings.wisdom;
        let ops = ask(self.engine, |engine| {
            engine.distil(&DistilInput {
                month: job.period,
                items: &items,
                logs: &logs,
                entries: &entries,
                memories: &memories,
                categories: &wisdom.categories,
            })
        })?;
        let caps = WisdomCaps { entries: wisdom.max_entries, chars: wisdom.max_chars };
        // What is said is checked against what people wrote above the logs, too.
        let written = summaries.iter().map(|(_, log)| log);
        let mut lines: Vec<ServedLog> = written.chain(&logs).cloned().collect();
        lines.sort_by(|a, b| a.stem().cmp(b.stem()));
        let edit = Edit {
            late: matches!(job.reason, Reason::Changed(_)),
            logs: &lines,
            memories: &memories,
            is_deleted: &|citation| decisions.is_deleted(&path, texts(citation, &lines)),
            rules,
            shaken: &shaken,
        };
        let before = file.clone();
        let mut done = edit.apply(&mut file, &ops, caps);
        let proposed = match wisdom.review {
            Review::Manual => review::changes_of(&done.ops, &done.dropped, &path, decisions),
            Review::Auto => Vec::new(),
        };
        if wisdom.review == Review::Manual && done.is_change() {
            file = before;
            done = done.undone();
        }
        if proposed.is_empty() {
            file.add_distilled(job.period);
        }
        done.newest.into_iter().for_each(|date| file.set_compacted(date));
        let text = file.print();
        let outcome = if !proposed.is_empty() {
            Outcome::Skipped
        } else if done.changed > 0 || !done.dropped.is_empty() || standing.is_none() {
            Outcome::Written
        } else {
            Outcome::Unchanged
        };
        let told = review::told(&done.kept_out, &path, self.engine, decisions, rules);
        let reason = reason_of(job, &done, proposed.len());
        let mut receipt = Receipt::new(outcome, Some(reason), (self.clock)());
        receipt.path = Some(path.clone());
        receipt.figures.sources = 1;
        receipt.figures.source_chars = month.text_chars() as u64;
        receipt.figures.output_chars = file.chars() as u64;
        receipt.figures.items = count(done.changed);
        self.add_spent(&mut receipt);
        receipt.figures.rejected = count(done.rejected);
        let is_kept = outcome == Outcome::Skipped;
        let documents = if is_kept { Vec::new() } else { vec![records::of_wisdom(&path, &text)] };
        let read = self.lines_read(&logs, &documents, view)?;
        let recorded = Recorded {
            documents,
            logs: read,
            used: vec![month_path],
            held: done.held.iter().flat_map(held_back).collect(),
            proposed: Some((job.fingerprint, job.period, proposed)),
            kept_out: Some((job.fingerprint, job.period, path.clone(), told)),
            ..Recorded::default()
        };
        let files = if standing.as_ref() == Some(&text) || is_kept {
            Vec::new()
        } else {
            vec![NewFile { path: path.clone(), text: Some(text), standing }]
        };
        self.write(None, Some((id, &receipt)), &files, &recorded)?;
        let paths = if outcome == Outcome::Written { vec![path] } else { Vec::new() };
        Ok(Made { receipt, paths })
    }

    /// Returns the lines of logs that were read, and of files that entries cite for the first time.
    fn lines_read(
        &self,
        logs: &[ServedLog],
        documents: &[DocumentRecord],
        view: &View,
    ) -> Result<Vec<LogRecord>, JobError> {
        let path = |log: &ServedLog| self.vault.layout().source(log.stem());
        let mut read: Vec<LogRecord> = logs.iter().map(|it| LogRecord::of(it, path(it))).collect();
        for document in documents {
            read.extend(self.newly_cited(&document.items, view)?);
        }
        Ok(read)
    }

    /// Reads the weekly and monthly files whose own lines are cited, by bullets or by entries.
    fn summaries_cited(
        &self,
        month: &Summary,
        items: &[(Option<Section>, Item)],
        file: &WisdomFile,
        rules: &Rules,
    ) -> Result<Vec<(Summary, ServedLog)>, JobError> {
        let mut stems: BTreeSet<Stem> = BTreeSet::new();
        let marks = file.entries().filter_map(|it| Some(&it.mark.as_ref()?.sources));
        for citation in items.iter().filter_map(|(_, it)| it.citation.as_ref()).chain(marks) {
            stems.extend(citation.files().map(|(stem, _)| stem.clone()).filter(Stem::is_summary));
        }
        let weeks = month.period.weeks();
        let mut found = Vec::new();
        for stem in stems {
            let Some(period) = stem.summary() else { continue };
            let path = self.vault.layout().source(&stem);
            let Some(text) = self.vault.read_text(&path)? else { continue };
            if period != month.period && !weeks.contains(&period) {
                continue;
            }
            let summary = Summary::parse(period, &text).map_err(|e| unreadable(&path, &e))?;
            let log = DailyLog::parse(stem, text.as_bytes()).map_err(|e| unreadable(&path, &e))?;
            found.push((summary, privacy::serve(&log, rules)));
        }
        Ok(found)
    }

    /// Reads the logs of all weeks of a month.
    fn logs_beneath(&self, month: Period, view: &View) -> Result<Vec<ServedLog>, JobError> {
        let rules = view.inventory.rules.clone();
        let mut logs = Vec::new();
        for week in month.weeks() {
            for stem in view.inventory.logs_of(week).map(|(stem, _)| stem) {
                if let Some(log) = self.vault.read_log(stem)? {
                    logs.push(privacy::serve(&log, &rules));
                }
            }
        }
        logs.sort_by(|a, b| a.stem().cmp(b.stem()));
        Ok(logs)
    }
}

/// Says why a month was distilled, and what came of it that is not seen in the file.
fn reason_of(job: &Job, done: &Edited, proposed: usize) -> String {
    let kept_out = review::note(&done.kept_out).map(|it| format!("; {it}")).unwrap_or_default();
    if proposed > 0 {
        return review::wait(proposed) + &kept_out;
    }
    let mut reason = job.reason.to_string();
    for id in &done.dropped {
        reason.extend(["; entry ", id, " dropped: its source changed"]);
    }
    reason + &kept_out
}

/// Returns the bullets of a month. One that a person wrote or changed is a source itself, above the
/// lines that it cites.
fn cite_own_lines(month: &Summary, text: &str, rules: &Rules) -> Vec<(Option<Section>, Item)> {
    let own = privacy::serve_own_lines(month, text, rules);
    let shown = |(section, mut item): (Option<Section>, Item)| {
        item.text = rules.shown(&item.text).into_owned();
        (section, item)
    };
    let seen = |(_, item): &(_, Item)| !own.as_ref().is_some_and(|it| it.holds(item));
    month.bullets_as_sources().map(shown).filter(seen).collect()
}

/// Follows the bullets of people whose words entries repeat to the lines where they stand now.
fn follow_summaries(file: &mut WisdomFile, summaries: &[(Summary, ServedLog)]) {
    let ours: Vec<WisdomEntry> = file.entries().filter(|it| it.is_ours()).cloned().collect();
    for entry in ours {
        let Some(mark) = &entry.mark else { continue };
        let (mut sources, mut known) = (mark.sources.clone(), mark.lines.clone());
        for (summary, log) in summaries {
            if sources.lines_of(log.stem()).is_none() {
                continue;
            }
            // An entry says the first sentences of a bullet.
            let says = |item: &Item| item.text.trim_start_matches("[ ] ").starts_with(&entry.text);
            let bullets = summary.bullets_with_lines().filter(|(_, item, _)| says(item));
            let lines: LineSet = bullets.flat_map(|(lines, ..)| lines).collect();
            if lines.is_empty() {
                continue;
            }
            for line in lines.iter().filter_map(|it| log.line(it)) {
                known.insert(log.address(line), line.hash().hex4());
            }
            sources.replace_lines(log.stem(), lines);
        }
        let source = |at: Address| (at.clone(), known.get(&at).cloned());
        if sources.rests_on_summary() {
            file.readdress(&mark.id, &sources.addresses().map(source).collect::<Vec<_>>());
        }
    }
}

/// Returns the typed memories whose newest source lies in the weeks of the month.
fn memories_of(month: Period, memories: &[TypedMemory]) -> Vec<TypedMemory> {
    let weeks = month.weeks();
    let (Some(first), last) = (weeks.first().map(|it| it.first()), month.last_source_day()) else {
        return Vec::new();
    };
    let inside = |it: &&TypedMemory| it.updated.is_some_and(|day| (first..=last).contains(&day));
    memories.iter().filter(inside).cloned().collect()
}

/// Returns the short hashes of cited lines.
fn hashes(citation: &Citation, logs: &[ServedLog]) -> Vec<(Address, String)> {
    let line = |at: Address| {
        let hash = logs.iter().find(|log| *log.stem() == at.stem)?.line(at.line)?.hash().hex4();
        Some((at, hash))
    };
    citation.addresses().filter_map(line).collect()
}

/// What an engine's operations may do to the file.
pub(super) struct Edit<'a> {
    /// The month was distilled before: only entries that rest on it are touched, and only what a
    /// person wrote is added.
    pub(super) late: bool,
    /// The logs, and the weekly and monthly files that people wrote in.
    pub(super) logs: &'a Vec<ServedLog>,
    pub(super) memories: &'a [TypedMemory],
    pub(super) is_deleted: &'a dyn Fn(&Citation) -> bool,
    /// What may be seen of what is written.
    pub(super) rules: &'a Rules,
    /// Entries that are rewritten by something new, or go.
    pub(super) shaken: &'a [Shaken],
}

/// What they did.
#[derive(Default)]
pub(super) struct Edited {
    pub(super) changed: usize,
    pub(super) rejected: usize,
    /// What the check kept out.
    kept_out: Vec<KeptOut>,
    /// Entries that nothing carries any more.
    dropped: Vec<String>,
    /// What was done, but for what was dropped.
    ops: Vec<WisdomOp>,
    /// What rests on nothing but text from elsewhere, and waits for a person.
    held: Vec<Citation>,
    pub(super) newest: Option<chrono::NaiveDate>,
}

impl Edited {
    /// Returns whether any entry is another one now.
    fn is_change(&self) -> bool {
        !self.ops.is_empty() || !self.dropped.is_empty()
    }

    /// Returns what is left of it when the file stays as it was.
    fn undone(self) -> Self {
        let Self { rejected, kept_out, held, .. } = self;
        Self { rejected, kept_out, held, ..Self::default() }
    }

    fn keep_out(&mut self, title: &str, text: &str, citation: &Citation, why: &Violation) {
        self.rejected += 1;
        self.kept_out.push(KeptOut {
            text: format!("{title}: {text}"),
            citation: Some(citation.clone()),
            why: why.to_string(),
            looks_ill: why.is_look(),
            passes: false,
        });
    }
}

impl Edit<'_> {
    pub(super) fn apply(
        &self,
        file: &mut WisdomFile,
        ops: &[WisdomOp],
        caps: WisdomCaps,
    ) -> Edited {
        let mut done = Edited::default();
        let mut touched = BTreeSet::new();
        let categories: Vec<String> = file.entries().filter_map(|it| it.category.clone()).collect();
        let mut open: Vec<&Shaken> = self.shaken.iter().collect();
        for op in ops {
            let (id, citation) = match op {
                WisdomOp::Add { title, text, category, citation, .. } => {
                    let heir = |it: &&Shaken| it.fit(title, text, citation);
                    let best = (0..open.len()).max_by_key(|&i| (heir(&open[i]), usize::MAX - i));
                    let best = best.filter(|&i| heir(&open[i]).is_some());
                    let late = self.late && best.is_none() && !citation.rests_on_summary();
                    if late || (self.is_deleted)(citation) {
                        continue;
                    }
                    if let Err(why) = self.stands(title, text, citation) {
                        done.keep_out(title, text, citation, &why);
                        continue;
                    }
                    if self.is_from_elsewhere(title, text, citation) {
                        done.held.push(citation.clone());
                        done.rejected += 1;
                        continue;
                    }
                    let (title, text) = self.written(title, text);
                    let id = if let Some(best) = best {
                        let old = open.remove(best);
                        file.readdress(&old.id, &old.sources_with(citation));
                        file.merge(&old.id, Some((&title, &text)), citation);
                        old.id.clone()
                    } else {
                        let category = category.as_deref().map(|it| self.rules.written(it));
                        file.add(&title, &text, category.as_deref(), citation.clone())
                    };
                    (id, citation)
                }
                WisdomOp::Merge { id, words, citation, .. } => {
                    let words = words.as_ref().map(|(title, text)| self.written(title, text));
                    let words = words.as_ref().map(|(title, text)| (&title[..], &text[..]));
                    if let Some((title, text)) = words
                        && let Err(why) = self.stands(title, text, citation)
                    {
                        done.keep_out(title, text, citation, &why);
                        continue;
                    }
                    // It would not even be said again: the same page twice is one voice.
                    if ground::is_from_elsewhere(citation, self.logs) {
                        done.rejected += 1;
                        continue;
                    }
                    if (self.late && !self.rests_here(file, id)) || !file.merge(id, words, citation)
                    {
                        continue;
                    }
                    (id.clone(), citation)
                }
                // An entry that nothing has reinforced is dropped where room is needed, not before.
                WisdomOp::Drop { .. } => continue,
            };
            file.note_lines(&id, hashes(citation, self.logs));
            touched.insert(id);
            done.ops.push(op.clone());
            done.changed += 1;
            done.newest = done.newest.max(Some(citation.newest_date()));
        }
        for entry in open {
            if file.drop_entry(&entry.id) {
                done.dropped.push(entry.id.clone());
            }
        }
        if done.changed > 0 || !done.dropped.is_empty() {
            for id in file.over_cap(caps, &touched) {
                file.drop_entry(&id);
                done.changed -= usize::from(touched.contains(&id));
            }
            file.tidy(&categories);
        }
        done
    }

    fn written(&self, title: &str, text: &str) -> (String, String) {
        (self.rules.written(title), self.rules.written_behind(title, text))
    }

    fn stands(&self, title: &str, text: &str, citation: &Citation) -> Result<(), Violation> {
        let item = Item { text: format!("{title}. {text}"), citation: Some(citation.clone()) };
        let checked = ground::check(&item, self.logs);
        if self.memories.iter().any(|it| is_said_by(it, &item)) { Ok(()) } else { checked }
    }

    /// Returns whether nothing carries the words but text from elsewhere: no person's or agent's line,
    /// and no memory that a person wrote.
    fn is_from_elsewhere(&self, title: &str, text: &str, citation: &Citation) -> bool {
        let item = Item { text: format!("{title}. {text}"), citation: Some(citation.clone()) };
        ground::is_from_elsewhere(citation, self.logs)
            && !self.memories.iter().any(|it| is_said_by(it, &item))
    }

    /// Returns whether the entry rests on a log of this month.
    fn rests_here(&self, file: &WisdomFile, id: &str) -> bool {
        let entry = file.entries().find(|it| it.id() == Some(id));
        entry.and_then(|it| it.mark.as_ref()).is_some_and(|mark| {
            mark.sources.files().any(|(stem, _)| self.logs.iter().any(|it| it.stem() == stem))
        })
    }
}

/// Returns whether the words of an item stand in a typed memory that a person changed and that rests
/// on the same lines.
fn is_said_by(memory: &TypedMemory, item: &Item) -> bool {
    let Some(citation) = &item.citation else { return false };
    let cited = Citation::from_addresses(memory.sources.iter().map(|(address, _)| address));
    let Some(day) = memory.sources.first().map(|(address, _)| address.stem.clone()) else {
        return false;
    };
    if memory.is_ours() || !cited.is_some_and(|it| it.shares_line_with(citation)) {
        return false;
    }
    let said = format!("{}\n{}", memory.name, memory.body);
    let Ok(log) = DailyLog::parse(day, said.as_bytes()) else { return false };
    let served = privacy::serve(&log, &Rules::default());
    let lines = served.lines().iter().filter(|it| !it.text().trim().is_empty());
    let addresses: Vec<Address> = lines.map(|it| served.address(it)).collect();
    let item = Item { text: item.text.clone(), citation: Citation::from_addresses(&addresses) };
    ground::check(&item, &vec![served]).is_ok()
}
