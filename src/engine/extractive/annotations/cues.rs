//! Words by which additions are known: English, German, French, Spanish, Italian, Portuguese, and Dutch, in
//! small letters.

/// Words that tell that something is done, each by itself.
pub(super) const DONE_WORDS: &[&str] = &[
    "resolved", "fixed", "done", "completed", "finished", "closed", "merged", "shipped", "released", "delivered",
    "received", "arrived", "approved", "signed", "confirmed", "answered", "replied", "unblocked", "cleared", "settled",
    "paid", "booked", "renewed", "submitted", "published", "deployed", "migrated", "solved",
    "behoben", "erledigt", "gelöst", "abgeschlossen", "fertig", "geliefert", "eingetroffen", "genehmigt", "unterschrieben",
    "bestätigt", "beantwortet", "bezahlt", "gebucht", "veröffentlicht",
    "résolu", "résolue", "corrigé", "corrigée", "terminé", "terminée", "livré", "livrée", "reçu", "reçue", "approuvé",
    "signé", "confirmé", "payé", "publié",
    "resuelto", "resuelta", "corregido", "arreglado", "terminado", "entregado", "recibido", "aprobado", "firmado",
    "confirmado", "pagado", "publicado",
    "risolto", "risolta", "corretto", "completato", "consegnato", "ricevuto", "approvato", "firmato", "confermato",
    "pagato", "pubblicato",
    "resolvido", "resolvida", "corrigido", "concluído", "entregue", "recebido", "aprovado", "assinado", "pago",
    "opgelost", "afgerond", "geleverd", "ontvangen", "goedgekeurd", "getekend", "bevestigd", "betaald",
];

/// Words that take back that something is done, or put it off.
pub(super) const NOT_DONE_WORDS: &[&str] = &[
    "not", "never", "no", "cannot", "still", "yet", "until", "unless", "once", "when", "if", "will",
    "would", "should", "must", "may", "might", "could", "need", "needs", "partly", "partially", "almost", "nearly",
    "half", "hopefully", "tried", "failed", "fails", "blocked", "waiting", "awaiting", "pending", "unresolved", "except",
    "reopened", "again", "wrongly", "mostly",
    "nicht", "nie", "kein", "keine", "noch", "bis", "falls", "wenn", "sobald", "wird", "soll", "muss", "fast", "teilweise",
    "pas", "jamais", "encore", "si", "quand", "presque", "doit", "sera",
    "ni", "nunca", "aún", "todavía", "cuando", "casi", "debe", "será",
    "non", "mai", "ancora", "se", "quando", "quasi", "deve", "sarà",
    "não", "ainda", "até",
    "niet", "nooit", "nog", "zodra", "als", "bijna", "moet", "wordt",
];

/// Words of an open item that only tell that it is open.
pub(super) const OPEN_WORDS: &[&str] = &[
    "blocked blocker blocking wait waits waiting awaiting await todo pending unresolved open outstanding next step follow \
     need needs still remain remains remaining confirm check finish",
    "blockiert warten wartet offen ausstehend nächster schritt klären prüfen",
    "bloqué attente attendre vérifier confirmer",
    "bloqueado pendiente esperar revisar confirmar",
    "bloccato attesa attendere verificare confermare",
    "pendente esperar verificar confirmar",
    "geblokkeerd wacht wachten openstaand nagaan bevestigen",
];

/// Words between what is named and the figure that it has, as long as nothing replaces it.
pub(super) const VALUE_LINK_WORDS: &[&str] = &[
    "at", "is", "are", "now", "to", "held", "set", "stays", "stayed", "remains", "remained", "fixed", "raised", "lowered",
    "kept", "moved", "currently", "still", "ist", "jetzt", "bei", "auf", "bleibt", "liegt", "est", "à", "reste", "es",
    "en", "sigue", "è", "a", "resta", "é", "fica", "op", "blijft",
];

/// Words of a statement that nothing is open.
pub(super) const NOTHING_OPEN_WORDS: &[&str] =
    &["no", "none", "nothing", "kein", "keine", "nichts", "aucun", "aucune", "rien", "ninguno", "ninguna", "nada", "nessuno", "nessuna", "niente", "nenhum", "nenhuma", "geen", "niets"];
