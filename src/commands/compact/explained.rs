//! How the extractive engine chooses for a week or a month, without writing it.

use std::{
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

use crate::{
    commands::{
        context::{Call, Root},
        error::{CommandError, Kind},
        ui::{Ui, one_line},
    },
    compaction::{self, plan::Selection, preview},
    config::settings::EngineKind,
    engine::{
        DistilInput, Draft, Engine, EngineError, ExtractInput, Extraction, FoldInput, WisdomOp,
        extractive::{self, Choice, Explanation, Extractive},
    },
    memory::period::{Grain, Period},
    store::lineage::Lineage,
};

/// Takes down how the extractive engine chooses, and drafts nothing.
#[derive(Default)]
struct Explaining {
    told: Mutex<Option<Explanation>>,
}

impl Engine for Explaining {
    fn id(&self) -> &str {
        Extractive.id()
    }

    fn fold(&self, input: &FoldInput<'_>) -> Result<Draft, EngineError> {
        let told = extractive::explain(input);
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        Err(EngineError::NothingToSay { period: input.period })
    }

    fn extract(&self, _: &ExtractInput<'_>) -> Result<Extraction, EngineError> {
        Ok(Extraction::default())
    }

    fn distil(&self, _: &DistilInput<'_>) -> Result<Vec<WisdomOp>, EngineError> {
        Ok(Vec::new())
    }
}

/// Prints what each sentence of a period is worth, which of them came in, and why others did not.
pub(super) fn show(
    call: &Call,
    root: &Root,
    period: Period,
    ui: &Ui,
) -> Result<ExitCode, CommandError> {
    if period.grain() == Grain::Day {
        return Err(CommandError::new(
            Kind::Usage,
            format!("{period} is a day, and nothing is chosen for a day"),
        )
        .hint(format!(
            "memoird compact --explain {}",
            Period::containing(Grain::Week, period.first())
        )));
    }
    let lineage = Lineage::open_existing(&root.vault.layout().database())?;
    let view = compaction::peek(&root.vault, lineage.as_ref())?;
    let engine = Explaining::default();
    let settings = super::asked::patient(root);
    let selection = Selection { period: Some(period), force: true, ..Selection::default() };
    let plan = compaction::plan_of(&view, &settings, engine.id(), &selection, call.now);
    if plan.sourceless.is_none() {
        preview::draft_all(&root.vault, &settings, &view, &plan, &engine)?;
    }
    let told = engine.told.into_inner().unwrap_or_else(PoisonError::into_inner);
    let Some(told) = told else {
        return Err(CommandError::new(
            Kind::Usage,
            format!("{period} has nothing beneath it that could be chosen"),
        )
        .hint(if period.grain() == Grain::Month {
            "memoird compact"
        } else {
            "memoird status"
        }));
    };
    if root.settings.settings.engine != EngineKind::Extractive {
        ui.note("a model drafts this root; this is how the engine without one would choose");
    }
    if ui.is_json() {
        ui.json(&told);
    } else {
        print(&told, ui);
    }
    Ok(ExitCode::SUCCESS)
}

fn print(told: &Explanation, ui: &Ui) {
    let Explanation { period, whole, target_chars, chars, units, chosen, left_out } = told;
    if *whole {
        ui.data(format!("{period}: the sources are short, and every line of theirs is kept"));
        return;
    }
    ui.data(format!(
        "{period}: {} of {units} sentences and clauses, {chars} of {target_chars} characters",
        chosen.len()
    ));
    ui.data("VALUE is what one added for each 100 characters when its turn came.");
    ui.data("");
    ui.heading("Came in, best first");
    let rows: Vec<_> = chosen.iter().map(|it| row(it, it.section)).collect();
    ui.table(&["VALUE", "CHARS", "LINE", "SECTION", "WEIGHS MOST", "TEXT"], &rows);
    if !left_out.is_empty() {
        ui.data("");
        ui.heading("Left out first");
        let rows: Vec<_> = left_out.iter().map(|it| row(it, it.why.words())).collect();
        ui.table(&["VALUE", "CHARS", "LINE", "WHY", "WEIGHS MOST", "TEXT"], &rows);
    }
}

fn row(choice: &Choice, told: &str) -> Vec<String> {
    /// More would wrap on most terminals; `--json` has all.
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
        told.to_owned(),
        weighs.join(", "),
        text,
    ]
}
