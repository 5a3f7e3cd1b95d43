//! `memoird compact --explain`: how the extractive engine chooses sentences, without writing anything.

use std::{
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

use crate::{
    commands::{
        error::{CommandError, CommandResult},
        ui::{Ui, one_line},
        workspace::{Invocation, MemoryRoot},
    },
    compaction::{self, plan::Selection, preview},
    config::settings::EngineKind,
    engine::{
        DistillInput, Engine, EngineDraft, EngineError, ExtractInput, Extraction, SummaryInput,
        WisdomOp,
        extractive::{self, ExplainedUnit, Extractive, SummaryExplanation},
    },
    memory::period::{Grain, Period},
    store::db::lineage::Lineage,
};

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

    fn distill(&self, _: &DistillInput<'_>) -> Result<Vec<WisdomOp>, EngineError> {
        Ok(Vec::new())
    }
}

/// Prints the score of each sentence of a period, which sentences were chosen, and why others were not.
pub(super) fn show_explanation(
    call: &Invocation,
    root: &MemoryRoot,
    period: Period,
    ui: &Ui,
) -> CommandResult {
    if period.grain() == Grain::Day {
        return Err(CommandError::usage(format!("cannot explain {period}: days have no summary"))
            .hint(format!(
                "memoird compact --explain {}",
                Period::containing(Grain::Week, period.first())
            )));
    }
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::read_snapshot(&root.vault, lineage.as_ref())?;
    let engine = ExplainingEngine::default();
    let settings = crate::commands::compact::model_preview::without_quiet_period(root);
    let selection = Selection { period: Some(period), force: true, ..Selection::default() };
    let plan = compaction::plan_snapshot(&view, &settings, engine.id(), &selection, call.now);
    if plan.without_source.is_none() {
        preview::preview_requests(&root.vault, &settings, &view, &plan, &engine)?;
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
    Ok(ExitCode::SUCCESS)
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
    /// Longer text would wrap on most terminals; `--json` has all of it.
    const TEXT_MAX: usize = 60;
    let weighs = choice.weighs_most.iter().take(3);
    let weighs: Vec<_> = weighs.map(|(words, weight)| format!("{words} {weight:.1}")).collect();
    let mut text = one_line(&choice.text);
    if let Some((end, _)) = text.char_indices().nth(TEXT_MAX) {
        text.truncate(end);
        text.push('…');
    }
    vec![
        format!("{:.2}", choice.value),
        choice.chars.to_string(),
        choice.address.to_string(),
        section_or_reason.to_owned(),
        weighs.join(", "),
        text,
    ]
}
