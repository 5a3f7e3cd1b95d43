//! Drafts a week or a month: read, ask the engine, check. Writes nothing.
//!
//! A draft depends on files and settings alone, so several periods are drafted in parallel;
//! [`crate::compaction::summary::write`] then merges and writes them one after the other.

use std::collections::{BTreeSet, HashMap, HashSet};

use chrono::NaiveDate;

use super::{
    orphaned_items::{self, OrphanedItems, WeekCitations},
    week_batch::WeekDraftCheck,
};
use crate::compaction::{
    cited_records::CitedRecords,
    error::{JobFailure, ask_engine},
    grounding::{self, GroundedDraft, Violation, Wording, completeness, people},
    plan::CompactionJob,
    proposals::items::{ExcludedItem, is_accepted},
};
use crate::{
    config::settings::{Compaction, Length},
    engine::{
        BulletFault, Engine, EngineDraft, EngineError, Extraction, LengthBudget, OmissionReason,
        StatementDraft, SummaryInput, WeekExtractInput, WeekSource,
        extractive::{
            self,
            corpus_stats::{self, Corpus, CorpusCounts},
        },
    },
    memory::{
        address::{Address, Citation, Stem},
        document::{self, Summary, SummaryError},
        item::{Item, SummarySection, Tier},
        log::DailyLog,
        markdown::LineKind,
        period::Period,
        typed::TypedMemory,
    },
    parallel,
    privacy::{self, PrivacyRules, SanitizedLine, SanitizedLog},
    store::fs::{
        inventory::Inventory,
        vault::{Vault, VaultError},
    },
};

/// The word counts of the root's logs, read as periods need them.
#[derive(Default)]
pub(crate) struct CorpusReader {
    corpus: Corpus,
    read: HashSet<Stem>,
}

/// The most characters of logs that are read to be asked together; the engine takes fewer.
const GROUP_CHARS_MAX: usize = 60_000;

/// How many logs a thread reads at once: enough that its stemmer pays off.
const LOGS_AT_ONCE: usize = 16;

impl CorpusReader {
    /// Reads the logs whose words are counted for these periods.
    ///
    /// The scan has reported a log that cannot be read; its words are not counted.
    pub(crate) fn prepare(
        &mut self,
        periods: impl IntoIterator<Item = Period>,
        vault: &Vault,
        inventory: &Inventory,
    ) -> Result<(), VaultError> {
        let mut stems = Vec::new();
        for period in periods {
            let (from, to) = corpus_stats::count_window(period);
            let logs = inventory.logs.range(Stem::day(from)..);
            let inside = logs.map(|(stem, _)| stem).take_while(|it| it.date() <= to);
            stems.extend(inside.filter(|it| self.read.insert((*it).clone())));
        }
        let rules = inventory.rules.clone();
        let shares: Vec<&[&Stem]> = stems.chunks(LOGS_AT_ONCE).collect();
        let readings = parallel::map(&shares, |share| {
            let mut logs = Vec::new();
            for stem in *share {
                logs.extend(vault.read_log(stem)?.map(|it| privacy::sanitize(&it, &rules)));
            }
            Ok::<_, VaultError>(corpus_stats::tokenize(&logs))
        });
        for share in readings {
            share?.into_iter().for_each(|it| self.corpus.add(it));
        }
        Ok(())
    }

    /// Returns the counts for `period`, which was prepared.
    pub(crate) fn counts(&mut self, period: Period) -> &CorpusCounts {
        self.corpus.counts(period)
    }
}

/// The sources of one summary job.
pub(crate) struct SummarySources {
    pub(crate) logs: Vec<SanitizedLog>,
    pub(crate) weeks: Vec<WeekSource>,
    /// Weekly files that are cited themselves: foreign ones, and bullets of a person.
    pub(crate) week_files: Vec<SanitizedLog>,
    /// Of these weekly files, those with quarantined lines.
    pub(crate) quarantined: Vec<SanitizedLog>,
    pub(crate) pointers: Vec<String>,
    pub(crate) chars: usize,
    /// The lines that bullets of ours cite in the weekly files.
    pub(crate) week_citations: WeekCitations,
    /// The hashes of bullets of weekly files that are in the words of external text.
    pub(crate) external_bullets: BTreeSet<String>,
    /// The people that memories name.
    pub(crate) people: BTreeSet<String>,
}

/// The draft of the engine after the checks.
pub(crate) struct SummaryDraft {
    pub(crate) sources: SummarySources,
    pub(crate) sections: Vec<(SummarySection, Vec<Item>)>,
    pub(crate) rejected: Vec<(SummarySection, Item, Violation)>,
    /// The same items, as a person reviews them.
    pub(crate) kept_out: Vec<ExcludedItem>,
    /// The number of drafted items, if the checks rejected all.
    pub(crate) all_rejected: Option<usize>,
    pub(crate) left_out: Vec<(Address, OmissionReason)>,
    /// A note for the receipt.
    pub(crate) note: Option<String>,
    /// Amounts and days in the lines that items of a model cite, and how many of them the items
    /// mention.
    pub(crate) amounts: (usize, usize),
    /// Whether the model was unavailable.
    pub(crate) is_offline: bool,
}

impl SummaryDraft {
    /// Notes that the draft was made without the model, and why.
    pub(crate) fn made_offline(mut self, why: &str) -> Self {
        let new_note = format!("made without the model: {why}");
        self.note = Some(self.note.map_or(new_note.clone(), |it| format!("{it}; {new_note}")));
        self.is_offline = true;
        self
    }
}

pub(crate) struct SummaryDrafter<'a> {
    pub(crate) vault: &'a Vault,
    pub(crate) engine: &'a dyn Engine,
    pub(crate) settings: &'a Compaction,
    pub(crate) inventory: &'a Inventory,
}

impl SummaryDrafter<'_> {
    /// Drafts the file of a job.
    pub(crate) fn draft(
        &self,
        job: &CompactionJob,
        counts: &CorpusCounts,
    ) -> Result<SummaryDraft, JobFailure> {
        let sources = match job.tier {
            Tier::Monthly => self.month_sources(job)?,
            _ => self.week_sources(job)?,
        };
        let (deleted_lines, logs) = self.without_deleted(job, &sources.logs);
        let kept = self.orphaned_items(job, &sources)?;
        let max_chars = self.length(job.tier).max_chars;
        let budget = self.budget(job.tier, sources.chars);
        let budget = kept.remaining_budget(budget, sources.chars, max_chars);
        let note = kept.note(max_chars);
        let check = |item: &Item| self.bullet_fault(item, &sources);
        let input = SummaryInput {
            period: job.period,
            logs: logs.as_deref().unwrap_or(&sources.logs),
            weeks: &sources.weeks,
            budget,
            counts,
            check: &check,
        };
        let draft = match ask_engine(self.engine, |engine| engine.summarize(&input)) {
            // There is no room beyond the orphaned items, or nothing more to say.
            Err(JobFailure::Engine(EngineError::EmptySources { .. })) if !kept.is_empty() => {
                EngineDraft::default()
            }
            draft => draft?,
        };
        let drafted: usize = draft.sections.iter().map(|(_, items)| items.len()).sum();
        let GroundedDraft { mut sections, rejected } = self.ground_draft(&draft, &sources);
        let rejected = orphaned_items::restore_orphaned(
            &mut sections,
            rejected,
            &sources.weeks,
            self.inventory,
        );
        for item in sections.iter_mut().flat_map(|(_, items)| items) {
            item.text = self.inventory.rules.sanitize_output(&item.text);
        }
        let mut notes: Vec<String> = note.into_iter().collect();
        let mut amounts = (0, 0);
        if self.engine.is_model() {
            let limit = budget.limit_chars;
            let pinned: HashSet<String> = extractive::pinned_items(&input)
                .into_iter()
                .map(|it| self.inventory.rules.sanitize_output(&it.1.text))
                .collect();
            let cut = trim_to_limit(&mut sections, limit, &pinned);
            if !cut.is_empty() {
                let count = cut.len();
                let lines = cited_lines(&cut);
                notes.push(format!("{count} left out over {limit} characters ({lines})"));
            }
            amounts = count_amounts(&sections, &sources);
        }
        if amounts.0 > 0 {
            notes.push(format!("{} of {} amounts and days kept", amounts.1, amounts.0));
        }
        if !draft.corrected.is_empty() {
            let count = draft.corrected.len();
            let lines = cited_lines(draft.corrected.iter().map(|it| &it.1));
            notes.push(format!("{count} corrected when asked again ({lines})"));
        }
        let note = (!notes.is_empty()).then(|| notes.join("; "));
        let is_empty = kept.is_empty() && sections.iter().all(|(_, items)| items.is_empty());
        let lines = sources.lines();
        let kept_out = rejected.iter().map(|(_, item, why)| ExcludedItem {
            text: item.text.clone(),
            citation: item.citation.clone(),
            reason: why.to_string(),
            looks_like_attack: why.is_suspicious(),
            may_be_accepted: grounding::is_only_suspicious(item, &lines),
        });
        let kept_out: Vec<ExcludedItem> = kept_out.collect();
        let all_rejected = (drafted > 0 && is_empty).then_some(drafted);
        let mut left_out = draft.omitted;
        left_out.extend(deleted_lines.into_iter().map(|it| (it, OmissionReason::Deleted)));
        let is_offline = false;
        Ok(SummaryDraft {
            sources,
            sections,
            rejected,
            kept_out,
            all_rejected,
            left_out,
            note,
            amounts,
            is_offline,
        })
    }

    /// Asks for several weeks at once, where that saves something. A week that cannot be read fails its own job.
    pub(crate) fn prefetch_weeks(
        &self,
        jobs: &[&CompactionJob],
        existing: &[TypedMemory],
    ) -> Result<(), JobFailure> {
        let counts = CorpusCounts::default();
        let mut weeks: Vec<(Period, SummarySources, LengthBudget)> = Vec::new();
        let mut chars = 0;
        for job in jobs {
            let read = || {
                let sources = self.week_sources(job)?;
                let is_whole = self.without_deleted(job, &sources.logs).0.is_empty();
                let kept = self.orphaned_items(job, &sources)?;
                let budget = self.budget(job.tier, sources.chars);
                let max_chars = self.length(job.tier).max_chars;
                let budget = kept.remaining_budget(budget, sources.chars, max_chars);
                Ok::<_, JobFailure>(is_whole.then_some((job.period, sources, budget)))
            };
            let Ok(Some(week)) = read() else { break };
            let is_first = weeks.is_empty();
            if is_first {
                let first = week_input(&week, &counts);
                if !ask_engine(self.engine, |engine| engine.may_prefetch(&first))? {
                    return Ok(());
                }
            }
            chars += week.1.chars;
            if !is_first && chars > GROUP_CHARS_MAX {
                break;
            }
            weeks.push(week);
        }
        let inputs: Vec<SummaryInput<'_>> =
            weeks.iter().map(|it| week_input(it, &counts)).collect();
        ask_engine(self.engine, |engine| engine.prefetch_weeks(&inputs, existing))
    }

    /// Asks for the memories of all days of a week that is summarized after them.
    pub(crate) fn ask_week_batch(
        &self,
        job: &CompactionJob,
        existing: &[TypedMemory],
        check: &WeekDraftCheck<'_>,
        may_ask: bool,
    ) -> Result<Option<(Extraction, Vec<SanitizedLog>)>, JobFailure> {
        let sources = self.week_sources(job)?;
        // What a person deleted from the week still belongs to its day.
        if !self.without_deleted(job, &sources.logs).0.is_empty() {
            return Ok(None);
        }
        let kept = self.orphaned_items(job, &sources)?;
        let budget = self.budget(job.tier, sources.chars);
        let max_chars = self.length(job.tier).max_chars;
        let input = SummaryInput {
            period: job.period,
            logs: &sources.logs,
            weeks: &sources.weeks,
            budget: kept.remaining_budget(budget, sources.chars, max_chars),
            counts: &CorpusCounts::default(),
            check: &|item| self.bullet_fault(item, &sources),
        };
        let check = |draft: &StatementDraft| check(&sources.logs, draft);
        let days = WeekExtractInput { existing, check: &check };
        let reply = ask_engine(self.engine, |engine| engine.extract_week(&input, &days, may_ask))?;
        Ok(reply.map(|it| (it, sources.logs)))
    }

    /// Checks a draft. An item of a model must match its lines, except one that a week already
    /// says.
    fn ground_draft(&self, draft: &EngineDraft, sources: &SummarySources) -> GroundedDraft {
        let lines = sources.lines();
        let may_pass = |item: &Item| is_accepted(item, &self.inventory.rules);
        let words = if self.engine.is_model() { Wording::Free } else { Wording::FromSources };
        let mut grounded = grounding::check_draft(draft, words, &lines, &may_pass);
        if !self.engine.is_model() {
            return grounded;
        }
        let week_texts: HashSet<&str> =
            sources.weeks.iter().flat_map(|it| &it.items).map(|it| &it.1.text[..]).collect();
        for (section, items) in &mut grounded.sections {
            items.retain(|item| {
                let verdict = grounding::check_model_item(item, &lines);
                let Err(why) = verdict else { return true };
                let keeps =
                    week_texts.contains(&item.text[..]) || why.is_suspicious() && may_pass(item);
                if !keeps {
                    grounded.rejected.push((*section, item.clone(), why));
                }
                keeps
            });
        }
        grounded.sections.retain(|(_, items)| !items.is_empty());
        grounded
    }

    /// Returns what is wrong with a bullet of a model.
    fn bullet_fault(&self, item: &Item, sources: &SummarySources) -> Option<BulletFault> {
        let check = |text: &str| {
            let item = Item { text: text.to_owned(), ..item.clone() };
            let sections = vec![(SummarySection::Context, vec![item])];
            let draft = EngineDraft { sections, ..EngineDraft::default() };
            let rejected = self.ground_draft(&draft, sources).rejected.pop();
            rejected.map_or(Ok(()), |(_, _, why)| Err(why))
        };
        if let Some(faults) = grounding::faults_of(&item.text, check) {
            return Some(BulletFault::Refused(faults));
        }
        let dropped = completeness::of_item(item, &sources.lines()).dropped;
        (!dropped.is_empty()).then(|| BulletFault::Incomplete {
            missing: dropped.len(),
            reason: format!("it leaves out {}, which its lines are about", dropped.join(", ")),
        })
    }

    /// Reads the orphaned items of the file.
    fn orphaned_items(
        &self,
        job: &CompactionJob,
        sources: &SummarySources,
    ) -> Result<OrphanedItems, JobFailure> {
        let path = self.vault.layout().summary(job.period);
        let text = self.vault.read_text(&path)?;
        let current = read_current(&path, job.period, text.as_deref())?;
        Ok(OrphanedItems::of(current.as_ref(), self.inventory, &sources.week_citations))
    }

    /// Removes the lines whose bullet a person deleted from the file, so that no other bullet
    /// brings their words back. `None` if there are none.
    fn without_deleted(
        &self,
        job: &CompactionJob,
        logs: &[SanitizedLog],
    ) -> (Vec<Address>, Option<Vec<SanitizedLog>>) {
        let path = self.vault.layout().summary(job.period);
        let decisions = &self.inventory.decisions;
        let is_barred =
            |line: &SanitizedLine| line.is_content() && decisions.is_deleted(&path, [line.text()]);
        let deleted_lines: Vec<Address> = logs
            .iter()
            .flat_map(|log| {
                let lines = log.lines().iter().filter(|it| is_barred(it));
                lines.map(|it| log.address(it)).collect::<Vec<_>>()
            })
            .collect();
        let logs = (!deleted_lines.is_empty())
            .then(|| logs.iter().map(|it| it.without(is_barred)).collect());
        (deleted_lines, logs)
    }

    fn week_sources(&self, job: &CompactionJob) -> Result<SummarySources, JobFailure> {
        let logs = read_logs(self.vault, job, &self.inventory.rules.clone())?;
        Ok(SummarySources {
            pointers: logs.iter().map(|it| self.vault.layout().source_path(it.stem())).collect(),
            chars: logs.iter().map(SanitizedLog::chars).sum(),
            weeks: Vec::new(),
            week_files: Vec::new(),
            quarantined: Vec::new(),
            week_citations: WeekCitations::new(),
            external_bullets: BTreeSet::new(),
            people: people::names_in_memories(&self.inventory.memories),
            logs,
        })
    }

    fn month_sources(&self, job: &CompactionJob) -> Result<SummarySources, JobFailure> {
        let mut sources = SummarySources {
            logs: Vec::new(),
            weeks: Vec::new(),
            week_files: Vec::new(),
            quarantined: Vec::new(),
            pointers: Vec::new(),
            chars: 0,
            week_citations: WeekCitations::new(),
            external_bullets: BTreeSet::new(),
            people: people::names_in_memories(&self.inventory.memories),
        };
        let rules = self.inventory.rules.clone();
        for (name, hash) in &job.inputs {
            let Ok(week) = name.parse::<Period>() else { continue };
            let path = self.vault.layout().summary(week);
            let text = self
                .vault
                .read_text(&path)?
                .ok_or_else(|| JobFailure::SourceChanged(path.clone()))?;
            let summary = Summary::parse(week, &text).map_err(|e| unreadable(&path, &e))?;
            if rules.summary_input_hash(week, &summary.body_hash().hex16()) != *hash {
                return Err(JobFailure::SourceChanged(path));
            }
            sources.chars += summary.text_chars();
            let own = privacy::sanitize_own_lines(&summary, &text, &rules);
            sources.quarantined.extend(own.as_ref().and_then(SanitizedLog::only_quarantined));
            let (source, cites_itself) = week_source(&summary, &text, own.as_ref(), &rules);
            if cites_itself {
                let stem = name.parse::<Stem>().map_err(|e| unreadable(&path, &e))?;
                let log =
                    DailyLog::parse(stem, text.as_bytes()).map_err(|e| unreadable(&path, &e))?;
                sources.week_files.push(privacy::sanitize(&log, &rules));
            }
            if let Some(header) = &summary.header {
                sources.external_bullets.extend(header.external.iter().cloned());
                let cited = source.items.iter().filter_map(|(_, it)| it.citation.as_ref());
                let cited = cited.filter(|it| !it.cites_summary());
                sources.week_citations.insert(week, cited.flat_map(Citation::addresses).collect());
            }
            sources.weeks.push(source);
            sources.pointers.push(path);
            for stem in self.inventory.logs_of(week).map(|(stem, _)| stem) {
                if let Some(log) = self.vault.read_log(stem)? {
                    sources.logs.push(privacy::sanitize(&log, &rules));
                }
            }
        }
        Ok(sources)
    }

    fn length(&self, tier: Tier) -> Length {
        match tier {
            Tier::Monthly => self.settings.monthly.clone(),
            _ => self.settings.weekly.clone(),
        }
    }

    /// Returns the maximum length of the text.
    fn budget(&self, tier: Tier, chars: usize) -> LengthBudget {
        let Length { ratio, max_ratio, max_chars } = self.length(tier);
        let whole = chars < self.settings.whole_below_chars;
        let cap = |it: usize| if max_chars == 0 { it } else { it.min(max_chars) };
        if whole {
            return LengthBudget {
                target_chars: usize::MAX,
                limit_chars: usize::MAX,
                verbatim: whole,
            };
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "the product of a length and a checked ratio below 1 is a length"
        )]
        let share = |ratio: f64| cap((chars as f64 * ratio).floor() as usize);
        LengthBudget {
            target_chars: share(ratio),
            limit_chars: share(max_ratio.max(ratio)),
            verbatim: whole,
        }
    }
}

fn all_items(sections: &[(SummarySection, Vec<Item>)]) -> impl Iterator<Item = &Item> {
    sections.iter().flat_map(|(_, items)| items)
}

/// Counts the amounts and days in the lines that the items cite, and how many of them the items mention.
fn count_amounts(
    sections: &[(SummarySection, Vec<Item>)],
    sources: &SummarySources,
) -> (usize, usize) {
    let lines = sources.lines();
    let all = all_items(sections).map(|it| completeness::of_item(it, &lines));
    let (kept, dropped) =
        all.fold((0, 0), |sum, it| (sum.0 + it.kept_count, sum.1 + it.dropped.len()));
    (kept + dropped, kept)
}

/// Returns a week as the engine is asked for it, unchecked.
fn week_input<'a>(
    (period, sources, budget): &'a (Period, SummarySources, LengthBudget),
    counts: &'a CorpusCounts,
) -> SummaryInput<'a> {
    let (period, budget, logs) = (*period, *budget, &sources.logs[..]);
    SummaryInput { period, logs, weeks: &[], budget, counts, check: &|_| None }
}

/// Returns the lines of some items for a note, which contains no words of a log.
fn cited_lines<'a>(items: impl IntoIterator<Item = &'a Item>) -> String {
    let lines = items.into_iter().filter_map(|it| it.citation.as_ref());
    lines.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Removes bullets until the text is short enough: not every model counts well. Returns those removed.
///
/// The last bullet of the section goes that has the most text to remove, so that no section pays for all. What a
/// month carries forward goes only when there is nothing else; those with `pinned` words never.
fn trim_to_limit(
    sections: &mut Vec<(SummarySection, Vec<Item>)>,
    limit_chars: usize,
    pinned: &HashSet<String>,
) -> Vec<Item> {
    let chars_of = |it: &Item| it.text.chars().count() + 3;
    let heading_chars = |it: SummarySection| it.title().len() + 6;
    let is_kept = |it: &Item| pinned.contains(&it.text);
    // Of each section the indices and characters of the bullets that may go, and whether it is carried forward.
    let mut removable: Vec<(Vec<(usize, usize)>, bool)> = Vec::new();
    let (mut chars, mut count) = (0, 0);
    for (section, items) in &*sections {
        let all = items.iter().enumerate().map(|(at, it)| (at, chars_of(it), is_kept(it)));
        let all: Vec<(usize, usize, bool)> = all.collect();
        chars += heading_chars(*section) + all.iter().map(|it| it.1).sum::<usize>();
        count += all.len();
        let free = all.iter().filter(|it| !it.2).map(|it| (it.0, it.1)).collect();
        removable.push((free, *section == SummarySection::CarriedForward));
    }
    let mut free: Vec<usize> =
        removable.iter().map(|it| it.0.iter().map(|it| it.1).sum()).collect();
    let mut cut = Vec::new();
    while chars > limit_chars && count > 1 {
        let left = |at: usize| sections[at].1.len() > 1;
        let rank = |&at: &usize| (left(at) && !removable[at].1, !removable[at].1, free[at]);
        let some = (0..removable.len()).filter(|it| !removable[*it].0.is_empty());
        let Some(at) = some.max_by_key(rank) else { break };
        let Some((index, removed)) = removable[at].0.pop() else { break };
        cut.push(sections[at].1.remove(index));
        (chars, count, free[at]) = (chars - removed, count - 1, free[at] - removed);
        if sections[at].1.is_empty() {
            chars -= heading_chars(sections[at].0);
        }
    }
    sections.retain(|(_, items)| !items.is_empty());
    cut
}

impl SummarySources {
    /// Returns the source lines by address.
    pub(crate) fn lines(&self) -> SourceLines<'_> {
        let logs = self.logs.iter().chain(&self.week_files);
        SourceLines {
            logs: logs.map(|it| (it.stem(), it)).collect(),
            weeks: &self.weeks,
            people: &self.people,
        }
    }
}

/// Source lines by address.
pub(crate) struct SourceLines<'a> {
    logs: HashMap<&'a Stem, &'a SanitizedLog>,
    weeks: &'a [WeekSource],
    people: &'a BTreeSet<String>,
}

impl grounding::LineLookup for SourceLines<'_> {
    fn log(&self, stem: &Stem) -> Option<&SanitizedLog> {
        self.logs.get(stem).copied()
    }

    fn has_word(&self, word: &str) -> bool {
        people::has_word_in(word, self.logs.values().copied())
    }

    fn known_people(&self) -> &BTreeSet<String> {
        self.people
    }

    fn is_person_name(&self, word: &str) -> bool {
        people::is_person_name_in(word, self.people, self.logs.values().copied())
    }

    fn checked_texts(&self, citation: &Citation) -> Vec<(NaiveDate, &str)> {
        let items = self.weeks.iter().flat_map(|it| &it.items);
        let cited = items.filter_map(|(_, it)| Some((it.citation.as_ref()?, &it.text[..])));
        cited.filter(|it| citation.covers(it.0)).map(|it| (it.0.newest_date(), it.1)).collect()
    }
}

/// Reads the logs of a job, as they were when it was planned, without lines that misquote a session record.
pub(crate) fn read_logs(
    vault: &Vault,
    job: &CompactionJob,
    rules: &PrivacyRules,
) -> Result<Vec<SanitizedLog>, JobFailure> {
    let mut logs = Vec::new();
    let mut records = CitedRecords::new(vault, rules);
    for (name, hash) in &job.inputs {
        let stem: Stem = name.parse().map_err(|e| unreadable(name, &e))?;
        let path = vault.layout().source_path(&stem);
        let log = vault.read_log(&stem)?.ok_or_else(|| JobFailure::SourceChanged(path.clone()))?;
        let log = privacy::sanitize(&log, rules);
        if log.input_hash().hex16() != *hash {
            return Err(JobFailure::SourceChanged(path));
        }
        logs.push(records.without_misquotes(log));
    }
    Ok(logs)
}

/// Reads the file with which a draft is merged. One that a disk emptied counts as none.
pub(crate) fn read_current(
    path: &str,
    period: Period,
    text: Option<&str>,
) -> Result<Option<Summary>, JobFailure> {
    let Some(text) = text else { return Ok(None) };
    match document::check_data_loss(text).and_then(|()| Summary::parse(period, text)) {
        Ok(summary) => Ok(Some(summary)),
        Err(SummaryError::Empty) => Ok(None),
        Err(error) => Err(unreadable(path, &error)),
    }
}

pub(crate) fn unreadable(path: &str, error: &dyn std::error::Error) -> JobFailure {
    JobFailure::Unreadable { path: path.to_owned(), reason: error.to_string() }
}

/// Reads a weekly file as the source of a month, and says whether its own lines are cited.
fn week_source(
    summary: &Summary,
    text: &str,
    own: Option<&SanitizedLog>,
    rules: &PrivacyRules,
) -> (WeekSource, bool) {
    let shown = |(section, mut item): (Option<SummarySection>, Item)| {
        item.text = rules.mask_secrets(&item.text).into_owned();
        (section, item)
    };
    let cites_own = |it: &Item| it.citation.as_ref().is_some_and(Citation::cites_summary);
    let mut items: Vec<_> = summary.bullets_as_sources().map(shown).collect();
    // A quoted bullet in a foreign file: the quote marks are not part of its words.
    for (_, item) in items.iter_mut().filter(|(_, it)| cites_own(it)) {
        item.text.drain(..item.text.len() - item.text.trim_start_matches(['>', ' ']).len());
    }
    items.retain(|(_, it)| !it.text.is_empty());
    let has_bullets = !items.is_empty();
    items.retain(|(_, it)| !own.is_some_and(|own| own.cites_quarantined(it)));
    let mut cites_itself = items.iter().any(|(_, item)| cites_own(item));
    if !has_bullets && summary.header.is_none() {
        items = foreign_lines(summary.period, text, rules);
        cites_itself = !items.is_empty();
    }
    (WeekSource { period: summary.period, items }, cites_itself)
}

/// Returns the items of a file without bullets: each line with content is one.
fn foreign_lines(
    week: Period,
    text: &str,
    rules: &PrivacyRules,
) -> Vec<(Option<SummarySection>, Item)> {
    let Ok(stem) = week.to_string().parse::<Stem>() else { return Vec::new() };
    let Ok(log) = DailyLog::parse(stem.clone(), text.as_bytes()) else { return Vec::new() };
    let sanitized = privacy::sanitize(&log, rules);
    let mut section = None;
    let mut items = Vec::new();
    for line in sanitized.lines() {
        match line.kind() {
            LineKind::Heading { .. } => {
                section = SummarySection::from_title(line.words());
            }
            _ if line.is_content() => {
                let citation = Some(Citation::single_line(stem.clone(), line.number()));
                items.push((section, Item { text: line.words().to_owned(), citation }));
            }
            _ => {}
        }
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the words of the bullets that are left, by section.
    fn trimmed(sections: &[(SummarySection, &[&str])], limit_chars: usize) -> Vec<String> {
        let items = |texts: &[&str]| texts.iter().map(|it| Item::parse(it)).collect();
        let mut sections: Vec<_> =
            sections.iter().map(|(section, texts)| (*section, items(texts))).collect();
        let all: usize = sections.iter().map(|it: &(_, Vec<Item>)| it.1.len()).sum();
        let cut =
            trim_to_limit(&mut sections, limit_chars, &HashSet::from(["pinned one".to_owned()]))
                .len();
        assert_eq!(cut + sections.iter().map(|it| it.1.len()).sum::<usize>(), all);
        let words = |(section, items): &(SummarySection, Vec<Item>)| {
            let texts: Vec<&str> = items.iter().map(|it| &it.text[..]).collect();
            format!("{}: {}", section.title(), texts.join(", "))
        };
        sections.iter().map(words).collect()
    }

    #[test]
    fn a_long_draft_is_shortened_where_it_is_longest() {
        use SummarySection::{BlockersAndOpenItems, CarriedForward, Context, Decisions, Themes};
        let week: [(SummarySection, &[&str]); 3] = [
            (Decisions, &["ten chars1", "ten chars2", "ten chars3"]),
            (BlockersAndOpenItems, &["ten chars4", "ten chars5", "ten chars6", "ten chars7"]),
            (Context, &["ten chars8", "pinned one"]),
        ];
        let whole = (3 * 13 + 15) + (4 * 13 + 27) + (13 + 13 + 13);
        let open = "Blockers & Open Items: ten chars4, ten chars5, ten chars6";
        let all = "Decisions: ten chars1, ten chars2, ten chars3";
        let context = "Context: ten chars8, pinned one";
        for (limit, expected) in [
            (whole, vec![all, &format!("{open}, ten chars7"), context]),
            (whole - 1, vec![all, open, context]),
            (whole - 14, vec![all, "Blockers & Open Items: ten chars4, ten chars5", context]),
            (
                whole - 27,
                vec![
                    "Decisions: ten chars1, ten chars2",
                    "Blockers & Open Items: ten chars4, ten chars5",
                    context,
                ],
            ),
            (0, vec!["Context: pinned one"]),
        ] {
            assert_eq!(trimmed(&week, limit), expected, "{limit}");
        }
        let month: [(SummarySection, &[&str]); 2] = [
            (Themes, &["ten chars1", "ten chars2"]),
            (CarriedForward, &["ten chars3", "ten chars4", "ten chars5"]),
        ];
        let carried = "Carried Forward: ten chars3, ten chars4, ten chars5";
        assert_eq!(trimmed(&month, 90), ["Themes: ten chars1", carried]);
        assert_eq!(trimmed(&month, 60), [carried]);
    }
}
