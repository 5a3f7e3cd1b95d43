//! Which section a statement belongs to: by its task box, its headings, then its own words.
//!
//! Structure works in every language; cue words are kept for those that we know, in one table.

use std::{
    collections::{HashMap, HashSet},
    sync::OnceLock,
};

use super::{
    cue_phrases,
    words::{HashedMap, hash_bytes},
};

/// What a statement tells, which decides the section of a week that it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum StatementClass {
    /// Done, shipped, fixed, measured.
    Outcome,
    /// Chosen, and perhaps why.
    Decision,
    /// Blocked, waiting, to do, asked.
    Open,
    /// The rest.
    Context,
}

/// Where a cue must stand to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CuePosition {
    /// Among the first words.
    Front,
    /// Anywhere.
    Any,
    /// In a heading or lead-in.
    Heading,
}

/// Cues by class and place, one line per language: English, German, French, Spanish, Italian,
/// Portuguese, Dutch. Phrases are parted by `|`.
const CUES: [(StatementClass, CuePosition, &[&str]); 9] = [
    (
        StatementClass::Decision,
        CuePosition::Heading,
        &[
            "decision|decisions|decided|key decisions|design decisions|choices|rationale|trade-offs|agreed|correction|corrections|\
             lesson|lessons|rule|rules",
            "entscheidung|entscheidungen|beschluss|beschlüsse|entschieden|korrektur|korrekturen|lehre|lehren|regel|regeln",
            "décision|décisions|choix|correction|corrections|leçon|leçons|règle|règles",
            "decisión|decisiones|acuerdos|corrección|correcciones|lección|lecciones|regla|reglas",
            "decisione|decisioni|scelte|correzione|correzioni|lezione|lezioni|regola|regole",
            "decisão|decisões|escolhas|correção|correções|lição|lições|regra|regras",
            "besluit|besluiten|beslissing|beslissingen|keuzes|correctie|correcties|les|lessen|regel|regels",
        ],
    ),
    (
        StatementClass::Open,
        CuePosition::Heading,
        &[
            "outstanding|open|open items|open questions|open loops|todo|todos|to do|to-do|next|next steps|next up|blockers|blocked|pending|\
         follow-up|follow-ups|follow up|follow ups|remaining|risks|action items|issues|carried forward|waiting|not done|deferred|known issues",
            "offen|offene punkte|nächste schritte|blockiert|ausstehend|fragen|risiken|aufgaben|zu tun",
            "à faire|en attente|prochaines étapes|bloqué|points ouverts|questions|risques|tâches",
            "pendiente|pendientes|por hacer|próximos pasos|bloqueos|preguntas|riesgos|tareas",
            "da fare|in sospeso|prossimi passi|bloccato|domande|rischi|aperti",
            "pendente|pendentes|a fazer|próximos passos|bloqueios|perguntas|riscos|tarefas",
            "te doen|openstaand|volgende stappen|geblokkeerd|vragen|risico's",
        ],
    ),
    (
        StatementClass::Outcome,
        CuePosition::Heading,
        &[
            "outcome|outcomes|results|result|done|completed|shipped|released|changes|what was done|what changed|what i did|accomplished|\
         deliverables|files changed|delivered|fixes|implementation|changes made|summary of changes|build & test|verification|merged|\
         achievements|wins|highlights|finished|changelog",
            "ergebnis|ergebnisse|erledigt|fertig|umgesetzt|geliefert|abgeschlossen|geschafft",
            "résultat|résultats|fait|terminé|livré|réalisé",
            "resultado|resultados|hecho|terminado|entregado|logros",
            "risultato|risultati|fatto|completato|consegnato",
            "feito|concluído|entregue|resultados",
            "resultaat|resultaten|gedaan|klaar|afgerond|opgeleverd",
        ],
    ),
    (
        StatementClass::Context,
        CuePosition::Heading,
        &[
            "context|background|root cause|root causes|problem|notes|observations|learned|learnings|problem statement|motivation|symptom|symptoms",
            "hintergrund|kontext|ursache|notizen|beobachtungen",
            "contexte|notes|cause",
            "contexto|notas|causa|antecedentes",
            "contesto|note|causa",
            "contexto|notas|causa",
            "achtergrond|notities|oorzaak",
        ],
    ),
    (
        StatementClass::Decision,
        CuePosition::Any,
        &[
            "decided|we decided|decision is|decision was|we chose|i chose|chose to|chosen|opted|agreed to|agreed on|agreed that|going with|went with|settled on|\
         in favor of|in favour of|rather than|instead of|will use|we'll use|ruled out|rejected|prefer|by design|trade-off|treated as",
            "entschieden|beschlossen|entscheidung|statt|anstatt|anstelle|einigten uns|festgelegt",
            "décidé|décision|choisi|au lieu de|plutôt que|opté",
            "decidido|decidió|decidimos|decisión|en lugar de|en vez de|elegimos|optamos|acordamos",
            "deciso|decisione|scelto|invece di|anziché|abbiamo optato",
            "decidido|decidiu|decidimos|decisão|em vez de|escolhemos|optamos",
            "besloten|besluit|gekozen|in plaats van|afgesproken",
        ],
    ),
    (
        StatementClass::Open,
        CuePosition::Any,
        &[
            "blocked|blocked on|blocked by|waiting for|waiting on|awaiting|todo|not yet|still need|still needs|still pending|pending|unresolved|\
         open question|open loop|open loops|next step|next steps|follow up|follow-up|needs to be|needs review|to be confirmed|tbd|outstanding|\
         remains open|remains to|unclear|carry forward|carried forward|unable to|stuck|deferred|not confirmed|no good|still failing",
            "blockiert|wartet auf|warten auf|offen|noch nicht|ausstehend|nächster schritt|muss noch|müssen noch|zu klären|unklar",
            "bloqué|bloquée|en attente|pas encore|à faire|reste à|prochaine étape|à confirmer",
            "bloqueado|bloqueada|pendiente|pendientes|a la espera|todavía no|aún no|falta|por confirmar|próximo paso",
            "bloccato|in attesa|non ancora|da fare|prossimo passo|da confermare|resta da",
            "bloqueado|pendente|à espera|ainda não|falta|próximo passo|a confirmar",
            "geblokkeerd|wacht op|wachten op|nog niet|openstaand|volgende stap|moet nog|onduidelijk",
        ],
    ),
    (
        StatementClass::Outcome,
        CuePosition::Front,
        &[
            "added|fixed|shipped|released|merged|implemented|completed|finished|moved|updated|updating|refactored|built|deployed|measured|removed|created|\
         extracted|published|renamed|resolved|replaced|wrote|changed|migrated|upgraded|closed|opened|passed|passes|pass|ran|delivered|sent|launched|\
         signed|reduced|improved|increased|cut|set up|got|enabled|disabled|switched|converted|verified|tested|documented|rebuilt|simplified|\
         split|stripped|captured|locked|confirmed|won|approved|clean|compiles|bumped|introduced|integrated|rewrote|reworked|cleaned|made|started|\
         submitted|announced|hired|finalized|finally|recorded|prepared|staged|coordinated|drafted|posted|reviewed",
            "behoben|hinzugefügt|erledigt|fertig|veröffentlicht|umgesetzt|gebaut|entfernt|umgestellt|abgeschlossen|ausgeliefert|migriert|gemessen|erstellt",
            "ajouté|corrigé|livré|publié|terminé|déployé|supprimé|migré|créé|mesuré|fusionné",
            "añadido|corregido|arreglado|publicado|terminado|desplegado|eliminado|migrado|creado|medido|lanzamos|terminamos",
            "aggiunto|corretto|pubblicato|completato|rilasciato|rimosso|migrato|creato|misurato",
            "adicionado|corrigido|publicado|concluído|lançado|removido|migrado|criado|medido",
            "toegevoegd|opgelost|uitgebracht|afgerond|gebouwd|verwijderd|gemigreerd|gemaakt|gemeten",
        ],
    ),
    (
        StatementClass::Outcome,
        CuePosition::Any,
        &[
            "shipped|was released|went live|is live|is done|now works|tests pass|all pass|is fixed|was fixed|was merged|signed off|was approved|were approved",
            "ist fertig|läuft jetzt|ist behoben|ist live|wurde ausgeliefert|wurde behoben",
            "est en ligne|est terminé|est corrigé|a été livré|a été corrigé",
            "está listo|ya funciona|quedó listo|fue publicado",
            "è pronto|ora funziona|è stato risolto|è stato rilasciato",
            "está pronto|já funciona|foi corrigido|foi publicado",
            "is klaar|werkt nu|is opgelost|is live",
        ],
    ),
    (
        StatementClass::Open,
        CuePosition::Front,
        &[
            "need to|waiting|confirm|watch|monitor|investigate|continue to|check whether|ask|remaining|build the|draft the|refine|finish|keep an eye",
            "warten|klären|prüfen|nachfragen",
            "attendre|vérifier|confirmer|demander",
            "confirmar|esperar|revisar|preguntar",
            "attendere|verificare|confermare|chiedere",
            "confirmar|esperar|verificar|perguntar",
            "wachten|nagaan|bevestigen|vragen",
        ],
    ),
];

/// Words that bring a reason, by language as above.
const REASONS: &str = "because|since|so that|due to|in order to|the reason|weil|da|denn|damit|wegen|aufgrund|parce|car|puisque|afin de|à cause|\
    porque|ya que|debido a|perché|poiché|affinché|pois|devido a|omdat|want|zodat|vanwege|потому";

/// A cue at the front stands among so many first words.
const FRONT_WORDS: usize = 3;

struct SectionCue {
    words: Vec<&'static str>,
    class: StatementClass,
    position: CuePosition,
}

fn cue_table() -> &'static HashedMap<Vec<SectionCue>> {
    static TABLE: OnceLock<HashedMap<Vec<SectionCue>>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = HashedMap::<Vec<SectionCue>>::default();
        for (class, place, languages) in CUES {
            for phrase in languages.iter().flat_map(|phrases| phrases.split('|')) {
                let words: Vec<_> = phrase.split_whitespace().collect();
                let Some(first) = words.first() else { continue };
                let cue = SectionCue { class, position: place, words: words.clone() };
                table.entry(hash_bytes(first.as_bytes())).or_default().push(cue);
            }
        }
        table
    })
}

/// Tells the class of what stands under a heading or lead-in, if it says so.
pub(super) fn class_of_head(head: &str) -> Option<StatementClass> {
    /// A longer heading tells a story; that a cue stands in it proves little.
    const WORDS_MAX: usize = 6;
    if has_more_words(head, WORDS_MAX) {
        return None;
    }
    let lower = head.to_lowercase();
    let words = split_words(&lower);
    if words.len() > WORDS_MAX {
        return None;
    }
    let found = matching_cues(&words).filter(|(_, cue)| cue.position == CuePosition::Heading);
    found.min_by_key(|&(at, cue)| (at, cue.class)).map(|(_, cue)| cue.class)
}

/// Tells the class of a statement from its own words.
///
/// In what somebody says (`spoken`), the first words give away no task: `I need to hear it`.
pub(super) fn class_of_words(text: &str, spoken: bool) -> StatementClass {
    let lower = text.to_lowercase();
    let words = split_words(&lower);
    let mut front = None;
    let mut any = None;
    for (at, cue) in matching_cues(&words) {
        match cue.position {
            CuePosition::Front if spoken && cue.class == StatementClass::Open => {}
            CuePosition::Front if at < FRONT_WORDS => {
                front.get_or_insert(cue.class);
            }
            // Of several, a decision tells most, then what is open.
            CuePosition::Any => {
                let rank = |class| {
                    matches!(class, StatementClass::Decision)
                        .then_some(2)
                        .unwrap_or(u8::from(class == StatementClass::Open))
                };
                if any.is_none_or(|class| rank(class) < rank(cue.class)) {
                    any = Some(cue.class);
                }
            }
            _ => {}
        }
    }
    match (front, any) {
        (_, Some(StatementClass::Decision)) => StatementClass::Decision,
        (Some(class), _) => class,
        (None, class) => class.unwrap_or(StatementClass::Context),
    }
}

/// Whether the words open with a decision, rather than mention one.
pub(super) fn opens_with_decision(text: &str) -> bool {
    let lower = text.to_lowercase();
    let words = split_words(&lower);
    matching_cues(&words).any(|(at, cue)| {
        at < FRONT_WORDS
            && cue.class == StatementClass::Decision
            && cue.position != CuePosition::Front
    })
}

/// Whether the words give a reason.
pub(super) fn gives_reason(text: &str) -> bool {
    static TABLE: OnceLock<HashMap<&'static str, &'static str>> = OnceLock::new();
    let lower = text.to_lowercase();
    let words = split_words(&lower);
    let reasons = TABLE.get_or_init(|| {
        let parts = REASONS.split('|').map(|it| it.split_once(' ').unwrap_or((it, "")));
        parts.collect()
    });
    // A reason follows what it is the reason of.
    (1..words.len()).any(|at| {
        let second = words.get(at + 1).copied().unwrap_or("");
        reasons.get(words[at]).is_some_and(|&it| it.is_empty() || it == second)
    })
}

/// Whether the words tell of a change from one thing to another.
pub(super) fn mentions_change(text: &str) -> bool {
    const CUES: &str = "from|was|now|no longer|instead|moved|switched|replaced|shifted|changed|increased|decreased|delayed|\
        postponed|revised|corrected|→|->|jetzt|nicht mehr|désormais|ahora|ya no|ora|agora|nu|niet meer";
    let lower = text.to_lowercase();
    let words = split_words(&lower);
    let has = |cue: &str| words.contains(&cue);
    (has("from") && has("to"))
        || (has("was") && has("now"))
        || CUES
            .split('|')
            .skip(3)
            .any(|cue| if cue.contains(' ') { lower.contains(cue) } else { has(cue) })
}

/// Whether a heading only names a kind of content, as templates do.
pub(super) fn is_template_head(head: &str) -> bool {
    const NEUTRAL: &str = "log|logs|daily log|work log|journal|summary|overview|today|yesterday|misc|miscellaneous|general|\
        session|sessions|updates|update|details|info|diary|entries|protokoll|tagebuch|zusammenfassung|heute|journal|résumé|\
        aujourd'hui|resumen|hoy|diario|riepilogo|oggi|resumo|hoje|samenvatting|vandaag|logboek";
    static NAMES: OnceLock<(HashSet<&'static str>, HashSet<&'static str>)> = OnceLock::new();
    // Most heads say more than a template does, and leave here.
    if has_more_words(head, 3) {
        return false;
    }
    let (neutral, weekdays) = NAMES.get_or_init(|| {
        (NEUTRAL.split('|').collect(), cue_phrases::WEEKDAYS.iter().copied().collect())
    });
    let lower = head.to_lowercase();
    let words = split_words(&lower);
    let joined = words.join(" ");
    weekdays.contains(&joined[..])
        || words.len() <= 3 && (neutral.contains(&joined[..]) || class_of_head(head).is_some())
}

/// Tells at a glance that a text has more than `most` words; there is no need to cut it up then.
fn has_more_words(text: &str, most: usize) -> bool {
    text.split_whitespace().filter(|it| it.contains(char::is_alphanumeric)).nth(most).is_some()
}

fn split_words(lower: &str) -> Vec<&str> {
    lower
        .split(|c: char| {
            c.is_whitespace()
                || matches!(
                    c,
                    ',' | '.' | ':' | ';' | '(' | ')' | '/' | '—' | '–' | '"' | '*' | '!' | '?'
                )
        })
        .filter(|w| !w.is_empty())
        .collect()
}

fn matching_cues<'w>(
    words: &'w [&'w str],
) -> impl Iterator<Item = (usize, &'static SectionCue)> + 'w {
    words.iter().enumerate().flat_map(move |(at, word)| {
        let cues = cue_table().get(&hash_bytes(word.as_bytes())).map_or(&[][..], Vec::as_slice);
        cues.iter().filter(move |cue| words[at..].starts_with(&cue.words)).map(move |cue| (at, cue))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: StatementClass) {
        assert_eq!(class_of_words(text, false), expected, "{text:?}");
    }

    #[test]
    fn words_tell_the_class() {
        check("Fixed the race in the queue", StatementClass::Outcome);
        check("I finally fixed it", StatementClass::Outcome);
        check("We decided to stay on version 3", StatementClass::Decision);
        check("SQLite instead of Postgres", StatementClass::Decision);
        check("Blocked on the vendor's reply", StatementClass::Open);
        check("The room was full of people", StatementClass::Context);
        check("Wir haben beschlossen, bei Version 3 zu bleiben", StatementClass::Decision);
        check("Warten auf die Antwort", StatementClass::Open);
        check("Corrigé le bogue du tri", StatementClass::Outcome);
        check("Queda pendiente la respuesta del banco", StatementClass::Open);
        check("Abbiamo deciso di aspettare", StatementClass::Decision);
        check("Ainda não temos resposta", StatementClass::Open);
        check("Opgelost: de fout in de sortering", StatementClass::Outcome);
    }

    #[test]
    fn talk_is_no_task() {
        assert_eq!(class_of_words("I need to hear that song again", true), StatementClass::Context);
        assert_eq!(class_of_words("Need to renew the insurance", false), StatementClass::Open);
        assert_eq!(class_of_words("I am still waiting for the visa", true), StatementClass::Open);
    }

    #[test]
    fn reasons_follow_what_they_explain() {
        #[track_caller]
        fn check(text: &str, expected: bool) {
            assert_eq!(gives_reason(text), expected, "{text:?}");
        }
        check("SQLite over Postgres, because one file is easier to copy", true);
        check("Wir bleiben bei SQLite, weil eine Datei reicht", true);
        check("SQLite porque basta un archivo", true);
        check("SQLite over Postgres", false);
        check("Because", false);
    }

    #[test]
    fn headings_tell_the_class() {
        assert_eq!(class_of_head("Key decisions"), Some(StatementClass::Decision));
        assert_eq!(class_of_head("Next steps"), Some(StatementClass::Open));
        assert_eq!(class_of_head("Offene Punkte"), Some(StatementClass::Open));
        assert_eq!(class_of_head("What was done"), Some(StatementClass::Outcome));
        assert_eq!(class_of_head("Task: sort the list by date"), None);
    }
}
