//! `memoird compact --explain`: how the extractive engine chooses sentences, without writing anything.

use std::{
    process::ExitCode,
    str::FromStr,
    sync::{Mutex, PoisonError},
};

use crate::{
    commands::ui::{Ui, shortened},
    compaction::{
        self,
        plan::{CompactionJob, Selection},
        preview,
        snapshot::RootSnapshot,
        wisdom::bullets,
    },
    config::settings::EngineKind,
    engine::{
        DistillInput, Distillation, Engine, EngineDraft, EngineError, ExtractInput, Extraction,
        SummaryInput,
        extractive::{
            self, DigestExplanation, DigestOutcome, ExplainedStatement, ExplainedUnit, Extractive,
            SummaryExplanation,
        },
    },
    memory::{
        item::Tier,
        period::{Grain, ParsePeriodError, Period},
    },
    operations::{
        error::{CommandError, CommandResult},
        forecast::without_quiet_period,
        workspace::{Invocation, MemoryRoot},
    },
    store::{db::lineage::Lineage, fs::layout::WISDOM_FILE},
};

/// What `--explain` is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ExplainTarget {
    /// A week or a month.
    Summary(Period),
    /// The bullets of `WISDOM.md`.
    Wisdom,
}

impl FromStr for ExplainTarget {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        if [WISDOM_FILE, "WISDOM"].contains(&name) {
            return Ok(Self::Wisdom);
        }
        let explained = name.parse().map(Self::Summary);
        explained
            .map_err(|it: ParsePeriodError| format!("{it}; {WISDOM_FILE} can be explained, too"))
    }
}

/// Records how the extractive engine chooses, and drafts nothing.
#[derive(Default)]
struct ExplainingEngine {
    explanation: Mutex<Option<SummaryExplanation>>,
}

impl Engine for ExplainingEngine {
    fn id(&self) -> &str {
        Extractive.id()
    }

    fn summarize(&self, input: &SummaryInput<'_>) -> Result<EngineDraft, EngineError> {
        let explanation = extractive::explain(input);
        *self.explanation.lock().unwrap_or_else(PoisonError::into_inner) = Some(explanation);
        Err(EngineError::EmptySources { period: input.period })
    }

    fn extract(&self, _: &ExtractInput<'_>) -> Result<Extraction, EngineError> {
        Ok(Extraction::default())
    }

    fn distill(&self, _: &DistillInput<'_>) -> Result<Distillation, EngineError> {
        Ok(Distillation::default())
    }
}

/// Prints the score of each sentence, which sentences were chosen, and why others were not.
pub(super) fn show_explanation(
    call: &Invocation,
    root: &MemoryRoot,
    target: ExplainTarget,
    ui: &Ui,
) -> CommandResult {
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    match target {
        ExplainTarget::Wisdom => explain_wisdom(call, root, &view, ui)?,
        ExplainTarget::Summary(period) => explain_summary(call, root, &view, period, ui)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Explains the bullets of `WISDOM.md`, as they would be chosen now.
fn explain_wisdom(
    call: &Invocation,
    root: &MemoryRoot,
    view: &RootSnapshot,
    ui: &Ui,
) -> CommandResult<()> {
    if !root.settings.settings.wisdom.digest {
        return Err(CommandError::usage(
            "this folder has no bullets in WISDOM.md: `wisdom.digest` is off",
        ));
    }
    let settings = without_quiet_period(root);
    let today = call.now.with_timezone(&settings.zone.name.0).date_naive();
    let newest = view.inventory.newest_day(today);
    let job = newest.and_then(|newest| {
        let period = Some(Period::containing(Grain::Day, newest));
        let selection =
            Selection { tiers: vec![Tier::Wisdom], period, force: true, ..Selection::default() };
        let plan =
            compaction::plan_snapshot(view, &settings, Extractive.id(), &selection, call.now);
        plan.jobs.into_iter().find(CompactionJob::is_digest)
    });
    let Some(job) = job else {
        return Err(CommandError::usage("there are no logs to choose from").hint("memoird status"));
    };
    let explanation = bullets::explain_bullets(&root.vault, &settings, view, &job)?;
    if ui.is_json() {
        ui.json(&explanation);
    } else {
        print_digest(&explanation, ui);
    }
    Ok(())
}

fn print_digest(explanation: &DigestExplanation, ui: &Ui) {
    let DigestExplanation { room_chars, statements, chosen, left_out } = explanation;
    ui.data(format!(
        "WISDOM.md: {} of {statements} statements, with room for {room_chars} characters",
        chosen.len()
    ));
    ui.data("VALUE is the gain per 100 characters at the time of the choice, WORTH what it counts by itself.");
    let row = |it: &ExplainedStatement, why: Option<&str>| {
        let numbers = [it.value, it.worth].map(|it| format!("{it:.2}"));
        let words = [&it.address, it.section].into_iter().chain(why).map(str::to_owned);
        let text = shortened(&it.text);
        numbers.into_iter().chain(words).chain([text]).collect::<Vec<_>>()
    };
    ui.data("");
    ui.heading("Chosen, best first");
    let rows: Vec<_> = chosen.iter().map(|it| row(it, None)).collect();
    ui.table(&["VALUE", "WORTH", "LINE", "SECTION", "TEXT"], &rows);
    if !left_out.is_empty() {
        ui.data("");
        ui.heading("Left out, best first");
        let why = |it: &ExplainedStatement| match &it.replaced_by {
            Some(newer) => format!("replaced by {newer}"),
            None => it.why.label().to_owned(),
        };
        let rows: Vec<_> = left_out.iter().map(|it| row(it, Some(&why(it)))).collect();
        ui.table(&["VALUE", "WORTH", "LINE", "SECTION", "WHY", "TEXT"], &rows);
        if left_out.iter().any(|it| matches!(it.why, DigestOutcome::HeldByChecks(_))) {
            ui.note("`memoird show DAY --origins` shows who wrote the lines of a held one, and `memoird review list` what waits for you");
        }
    }
}

fn explain_summary(
    call: &Invocation,
    root: &MemoryRoot,
    view: &RootSnapshot,
    period: Period,
    ui: &Ui,
) -> CommandResult<()> {
    if period.grain() == Grain::Day {
        return Err(CommandError::usage(format!("cannot explain {period}: days have no summary"))
            .hint(format!(
                "memoird compact --explain {}",
                Period::containing(Grain::Week, period.first())
            )));
    }
    let engine = ExplainingEngine::default();
    let settings = without_quiet_period(root);
    let selection = Selection { period: Some(period), force: true, ..Selection::default() };
    let plan = compaction::plan_snapshot(view, &settings, engine.id(), &selection, call.now);
    if plan.without_source.is_none() {
        preview::preview_requests(&root.vault, &settings, view, &plan, &engine)?;
    }
    let explanation = engine.explanation.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Some(explanation) = explanation else {
        return Err(CommandError::usage(format!("{period} has no sources to choose from")).hint(
            if period.grain() == Grain::Month { "memoird compact" } else { "memoird status" },
        ));
    };
    if root.settings.settings.engine != EngineKind::Extractive {
        ui.note("this folder uses a model; this is how the extractive engine would choose");
    }
    if ui.is_json() {
        ui.json(&explanation);
    } else {
        print_explanation(&explanation, ui);
    }
    Ok(())
}

fn print_explanation(explanation: &SummaryExplanation, ui: &Ui) {
    let SummaryExplanation { period, whole, target_chars, chars, units, chosen, left_out } =
        explanation;
    if *whole {
        ui.data(format!("{period}: the sources are short, so every line is kept"));
        return;
    }
    ui.data(format!(
        "{period}: {} of {units} sentences and clauses, {chars} of {target_chars} characters",
        chosen.len()
    ));
    ui.data("VALUE is the gain per 100 characters at the time of the choice.");
    ui.data("");
    ui.heading("Chosen, best first");
    let rows: Vec<_> = chosen.iter().map(|it| choice_row(it, it.section)).collect();
    ui.table(&["VALUE", "CHARS", "LINE", "SECTION", "TOP WORDS", "TEXT"], &rows);
    if !left_out.is_empty() {
        ui.data("");
        ui.heading("Left out, best first");
        let rows: Vec<_> = left_out.iter().map(|it| choice_row(it, it.why.label())).collect();
        ui.table(&["VALUE", "CHARS", "LINE", "WHY", "TOP WORDS", "TEXT"], &rows);
    }
}

fn choice_row(choice: &ExplainedUnit, section_or_reason: &str) -> Vec<String> {
    let weighs = choice.weighs_most.iter().take(3);
    let weighs: Vec<_> = weighs.map(|(words, weight)| format!("{words} {weight:.1}")).collect();
    vec![
        format!("{:.2}", choice.value),
        choice.chars.to_string(),
        choice.address.to_string(),
        section_or_reason.to_owned(),
        weighs.join(", "),
        shortened(&choice.text),
    ]
}
