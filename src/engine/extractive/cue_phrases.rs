//! Cue phrases: the words by which a statement shows what it is.
//!
//! Data, and the shape it has, in one place, so that a phrase or a language is added without
//! touching a rule. Each table holds lower-case phrases of English, German, French, Spanish, Italian,
//! Portuguese, and Dutch, in that order; `statements` matches them word by word, and a phrase ending
//! in `*` matches words that begin so. Called by `memories` and `wisdom`.

/// Phrases that are looked up among the words of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct CueTable {
    /// The place in [`ALL_TABLES`], and so the bit that tells of a word that it opens one of the phrases.
    index: u32,
    phrases: &'static [&'static str],
}

impl CueTable {
    const fn new(place: u32, phrases: &'static [&'static str]) -> Self {
        Self { index: place, phrases }
    }

    /// Returns the phrases, as they stand in the table.
    pub(super) const fn phrases(self) -> &'static [&'static str] {
        self.phrases
    }

    /// Returns the bit of this table in a mask of tables.
    pub(super) const fn bit(self) -> u64 {
        1 << self.index
    }

    /// Returns whether a word is one of the phrases.
    pub(super) fn contains(self, word: &str) -> bool {
        self.phrases.contains(&word)
    }
}

/// Every table of [`CueTable`], each at its place.
pub(super) const ALL_TABLES: &[CueTable] = &[
    RULE,
    RULE_OPENERS,
    NOT_RULES,
    FROM_NOW_ON,
    INSTRUCTED,
    LASTING_WORDS,
    BECAUSE,
    SO_THAT,
    OTHERWISE,
    SO_FIRST_PERSON,
    ARTICLES,
    INSTEAD,
    DECIDED,
    NOT_DECISIONS,
    PREFERS,
    WANTS,
    HABIT,
    FIRST_PERSON_FACTS,
    CONDITIONS,
    HAS_PREFERENCE,
    PREFERENCE_AS,
    PERSON_FACTS,
    FAVORITE,
    PERSONS,
    IS_A,
    DEADLINE,
    MONTHS,
    FAILURES,
    REFERENCE_NOUNS,
    LIVES_AT,
    STORED_IN,
    BACK_REFERENCES,
    TRANSIENT,
    NARRATIVE,
    ROUTINE,
    REPORT_OPENERS,
    TASK_OPENERS,
    LASTING_LIMITS,
    ROLES,
];

const _: () = {
    assert!(ALL_TABLES.len() <= 64, "a mask has a bit for each table");
    let mut at = 0;
    while at < ALL_TABLES.len() {
        assert!(ALL_TABLES[at].index as usize == at, "each table stands at its own place");
        at += 1;
    }
};

/// Titles and labels of what was said about somebody's work; it takes a rule to be guidance.
pub(super) const FEEDBACK_TITLES: &[&str] = &[
    "feedback", "feedback received", "guidance", "rückmeldung", "retour", "terugkoppeling",
    "comentarios", "commenti", "comentários",
];

/// Titles and labels of guidance itself.
pub(super) const LESSON_TITLES: &[&str] = &[
    "correction", "corrections", "lesson", "lessons", "lesson learned", "lessons learned", "rule",
    "rules", "new rule", "standing rule", "standing rules", "ground rule", "ground rules",
    "takeaway", "takeaways", "key takeaway", "key takeaways", "learning", "learnings",
    "note to self", "remember", "for future reference", "guideline", "guidelines", "korrektur",
    "lehre", "lehren", "regel", "regeln", "grundsatz", "grundsätze", "erkenntnis", "erkenntnisse",
    "merke", "leçon", "leçons", "règle", "règles", "consigne", "consignes", "à retenir",
    "corrección", "lección", "lecciones", "lección aprendida", "lecciones aprendidas", "regla",
    "reglas", "aprendizajes", "correzione", "lezione", "lezioni", "lezione imparata", "regola",
    "regole", "da ricordare", "correção", "lição", "lições", "lição aprendida", "lições aprendidas",
    "regra", "regras", "aprendizados", "correctie", "les", "lessen", "geleerde les",
    "geleerde lessen", "regels", "onthouden",
];

/// Last words of a label of guidance: `User correction`, `Key lesson`.
pub(super) const LESSON_NOUNS: &[&str] = &[
    "correction", "lesson", "lessons", "korrektur", "lehre", "leçon", "corrección", "lección",
    "correzione", "lezione", "correção", "lição", "correctie",
];

/// Titles and labels of decisions.
pub(super) const DECISION_TITLES: &[&str] = &[
    "decision", "decisions", "key decision", "key decisions", "design decision", "design decisions",
    "decisions made", "decision made", "decided", "entscheidung", "entscheidungen", "beschluss",
    "beschlüsse", "entschieden", "décision", "décisions", "décisions clés", "decisión",
    "decisiones", "decisiones clave", "decisione", "decisioni", "decisioni chiave", "decisão",
    "decisões", "decisões principais", "beslissing", "beslissingen", "besluit", "besluiten",
];

/// Titles and labels of preferences.
pub(super) const PREFERENCE_TITLES: &[&str] = &[
    "preference", "preferences", "added preference", "new preference", "user preference",
    "user preferences", "standing preference", "prefers", "working style", "vorliebe", "vorlieben",
    "präferenz", "präferenzen", "arbeitsweise", "préférence", "préférences", "preferencia",
    "preferencias", "preferenza", "preferenze", "preferência", "preferências", "voorkeur",
    "voorkeuren",
];

/// Titles and labels of a reason.
pub(super) const REASON_TITLES: &[&str] = &[
    "why", "reason", "rationale", "why this matters", "motivation", "warum", "grund", "begründung",
    "pourquoi", "raison", "motif", "por qué", "razón", "motivo", "perché", "por quê", "por que",
    "razão", "waarom", "reden",
];

/// Labels of how to act on a rule.
pub(super) const HOW_TO_APPLY_TITLES: &[&str] = &[
    "how to apply", "apply", "in practice", "when", "anwendung", "in der praxis", "application",
    "en pratique", "cómo aplicarlo", "en la práctica", "come applicarlo", "in pratica",
    "como aplicar", "na prática", "toepassing", "in de praktijk",
];

/// Titles and labels under which stands the state of one task, and nothing that lasts.
pub(super) const TASK_TITLES: &[&str] = &[
    "outstanding", "open", "open loops", "open items", "open questions", "todo", "to do", "todos",
    "tasks", "next", "next step", "next steps", "next actions", "action items", "actions",
    "follow up", "follow ups", "pending", "remaining", "blockers", "in progress", "what i did",
    "what was done", "what was built", "what i produced", "done", "completed", "progress",
    "changes", "changes made", "what changed", "fix", "fixes", "the fix", "files", "files changed",
    "files touched", "files artifacts touched", "files produced changed", "files modified",
    "files created", "build test", "build", "test", "tests", "testing", "verification",
    "build verification", "verified", "status", "root cause", "problem", "bug", "symptom",
    "implementation", "deliverables", "produced", "artifacts", "standup", "plan", "priorities",
    "goals for today", "example", "examples", "diagnosis", "offen", "aufgaben", "nächste schritte",
    "erledigt", "fortschritt", "änderungen", "dateien", "stand", "à faire", "prochaines étapes",
    "fait", "fichiers", "avancement", "statut", "pendiente", "pendientes", "próximos pasos",
    "hecho", "archivos", "tareas", "estado", "da fare", "prossimi passi", "fatto",
    "file modificati", "attività", "stato", "pendente", "pendentes", "próximos passos", "feito",
    "arquivos", "tarefas", "te doen", "volgende stappen", "gedaan", "bestanden", "taken",
    "voortgang",
];

/// What makes a sentence a rule that stands.
pub(super) const RULE: CueTable = CueTable::new(
    0,
    &[
        "always", "never", "must", "must not", "should", "should not", "shouldn't", "do not",
        "don't", "avoid", "make sure", "from now on", "going forward", "in the future",
        "every time", "no longer", "only ever", "stop", "prefer", "does not belong",
        "doesn't belong", "be sure", "please", "bitte", "por favor", "per favore",
        "s'il vous plaît", "alstublieft", "immer", "nie", "niemals", "muss", "müssen", "darf nicht",
        "dürfen nicht", "soll", "sollen", "sollte", "ab jetzt", "künftig", "vermeiden", "ab sofort",
        "in zukunft", "toujours", "jamais", "il faut", "ne pas", "doit", "doivent", "désormais",
        "éviter", "à l'avenir", "dorénavant", "siempre", "nunca", "hay que", "debe", "deben",
        "no debe", "evitar", "de ahora en adelante", "a partir de ahora", "sempre", "bisogna",
        "deve", "devono", "evitare", "d'ora in poi", "non deve", "d'ora in avanti", "é preciso",
        "devem", "não deve", "de agora em diante", "a partir de agora", "altijd", "nooit", "moet",
        "moeten", "mag niet", "vermijd", "voortaan", "vanaf nu",
    ],
);

/// How a rule begins when nobody is named: the imperative.
pub(super) const RULE_OPENERS: CueTable = CueTable::new(
    1,
    &[
        "always", "never", "do not", "don't", "avoid", "from now on", "going forward",
        "in the future", "in future", "immer", "nie", "niemals", "ab jetzt", "ab sofort", "künftig",
        "in zukunft", "vermeide", "nicht mehr", "toujours", "ne jamais", "jamais", "ne pas",
        "désormais", "à l'avenir", "dorénavant", "évite", "éviter", "évitez", "siempre", "nunca",
        "de ahora en adelante", "a partir de ahora", "evita", "evitar", "sempre", "mai",
        "d'ora in poi", "d'ora in avanti", "evitare", "de agora em diante", "a partir de agora",
        "evite", "altijd", "nooit", "voortaan", "vanaf nu", "vermijd",
    ],
);

/// How a rule seems to begin, in talk that is none.
pub(super) const NOT_RULES: CueTable = CueTable::new(
    2,
    &[
        "don't forget", "do not forget", "don't worry", "never mind", "don't hesitate",
        "never thought", "never been", "never heard", "never knew", "never seen",
        "always a pleasure", "always nice", "always good", "always happy", "always fun",
        "always great", "don't know", "don't think", "don't have", "don't see", "always been",
        "always wanted", "always loved", "always had", "stop by", "never tried", "never had",
        "don't give up", "never give up", "never stop", "don't let", "do not know", "stopped",
        "vergiss nicht", "keine sorge", "n'oublie pas", "n'oubliez pas", "ne t'inquiète pas",
        "no te preocupes", "no olvides", "non dimenticare", "non preoccuparti", "não se preocupe",
        "não esqueça", "vergeet niet", "geen zorgen",
    ],
);

/// Openers that a standing wish of a person has: it reaches beyond the task at hand.
pub(super) const FROM_NOW_ON: CueTable = CueTable::new(
    3,
    &[
        "from now on", "going forward", "in the future", "in future", "every time", "ab jetzt",
        "ab sofort", "künftig", "in zukunft", "désormais", "à l'avenir", "dorénavant",
        "de ahora en adelante", "a partir de ahora", "en el futuro", "d'ora in poi",
        "d'ora in avanti", "in futuro", "de agora em diante", "a partir de agora", "no futuro",
        "voortaan", "vanaf nu", "in de toekomst",
    ],
);

/// Somebody told the writer how to work. What follows counts only with a [`LASTING_WORDS`] word.
pub(super) const INSTRUCTED: CueTable = CueTable::new(
    4,
    &[
        "user instructed", "user asked to", "user asked me to", "user asked us to", "user told",
        "user said", "user says", "user wants me to", "user corrected", "user insisted",
        "user reminded", "instructed all", "instructed me", "instructed us", "asked me to",
        "asked us to", "told me to", "told us to", "told me never", "told us never",
        "reminded me to", "reminded us to", "asked me never", "asked to stop", "wants us to",
        "wants me to", "nutzer bat", "nutzerin bat", "bat mich", "bat uns", "bat darum",
        "sagte mir", "l'utilisateur demande", "l'utilisateur a demandé", "m'a demandé",
        "nous a demandé", "a demandé de", "el usuario pidió", "la usuaria pidió", "me pidió",
        "nos pidió", "pidió que", "l'utente ha chiesto", "mi ha chiesto", "ci ha chiesto",
        "ha chiesto di", "o usuário pediu", "a usuária pediu", "pediu me", "pediu que",
        "pediu para", "gebruiker vroeg", "vroeg me", "vroeg ons", "vroeg om",
    ],
);

/// Words that make an instruction outlast its task.
pub(super) const LASTING_WORDS: CueTable = CueTable::new(
    5,
    &[
        "always", "never", "from now on", "going forward", "in the future", "in future",
        "every time", "stop", "any longer", "immer", "nie", "niemals", "ab jetzt", "ab sofort",
        "künftig", "in zukunft", "nicht mehr", "toujours", "jamais", "désormais", "à l'avenir",
        "ne plus", "siempre", "nunca", "de ahora en adelante", "a partir de ahora", "dejar de",
        "sempre", "d'ora in poi", "smettere", "de agora em diante", "a partir de agora", "parar de",
        "altijd", "nooit", "voortaan", "vanaf nu", "niet meer",
    ],
);

/// Markers before a reason; the reason is what follows.
pub(super) const BECAUSE: CueTable = CueTable::new(
    6,
    &[
        "because", "because of", "since", "due to", "weil", "denn", "parce que", "parce qu'*",
        "puisque", "porque", "ya que", "puesto que", "debido a", "perché", "poiché", "siccome",
        "dato che", "pois", "já que", "uma vez que", "visto que", "omdat", "aangezien",
    ],
);

/// Markers that belong to the reason and stay in it.
pub(super) const SO_THAT: CueTable = CueTable::new(
    7,
    &[
        "so that", "so", "to avoid", "to prevent", "in order to", "otherwise", "or else", "damit",
        "sonst", "andernfalls", "um zu vermeiden", "afin que", "afin de", "pour que", "pour éviter",
        "sinon", "para que", "para evitar", "de lo contrario", "si no", "affinché", "per evitare",
        "altrimenti", "senão", "caso contrário", "zodat", "om te voorkomen",
    ],
);

/// Markers that name what happens else; they may also end the reason.
pub(super) const OTHERWISE: CueTable = CueTable::new(
    8,
    &[
        "otherwise", "sonst", "andernfalls", "sinon", "altrimenti", "senão", "anders", "reason",
        "the reason",
    ],
);

/// Before a reason these say that it is none.
pub(super) const NEGATIONS: &[&str] = &[
    "never", "don't", "not", "no", "only", "just", "nicht", "nie", "nur", "pas", "jamais", "non",
    "solo", "não", "só", "niet", "nooit", "alleen",
];

/// Words after `so` that make it a reason rather than a sequel.
pub(super) const AFTER_SO: &[&str] = &[
    "it", "it's", "they", "we", "you", "i", "he", "she", "the", "a", "an", "users", "everyone",
    "nobody", "no", "one", "each", "that",
];

/// Where a part of a clause begins: a title may end before it. With their spaces, as they stand in text.
pub(super) const CLAUSE_STARTS: &[&str] = &[
    ", ", " and ", " unless ", " until ", " when ", " if ", " while ", " instead of ",
    " rather than ", " because ", " so that ", " which ", " for ", " in ", " at ", " on ", " with ",
    " und ", " wenn ", " weil ", " für ", " mit ", " bei ", " et ", " si ", " pour ", " avec ",
    " dans ", " y ", " para ", " con ", " en ", " e ", " per ", " em ", " com ", " en ", " als ",
    " voor ", " met ",
];

/// `so` goes on with what the writer did.
pub(super) const SO_FIRST_PERSON: CueTable = CueTable::new(
    9,
    &["so i", "so we", "also habe ich", "donc j'*", "así que", "quindi ho", "então eu", "dus ik"],
);

/// Before a name in a label: `Correction from Ines`. With their spaces, as they stand in text.
pub(super) const NAME_PREPOSITIONS: &[&str] = &[
    " from ", " by ", " for ", " von ", " für ", " de ", " par ", " da ", " di ", " van ", " para ",
];

/// Articles before what a person is called by: `the user`.
pub(super) const ARTICLES: CueTable = CueTable::new(10, &["the", "der", "die", "le", "la", "el", "il", "lo", "o", "a", "de", "het"]);

/// What a rule or decision can be weighed against: enough of a reason beside a decision's verb.
pub(super) const INSTEAD: CueTable = CueTable::new(
    11,
    &[
        "instead of", "rather than", "statt", "anstatt", "anstelle", "au lieu de", "plutôt que",
        "en lugar de", "en vez de", "invece di", "piuttosto che", "em vez de", "ao invés de",
        "in plaats van",
    ],
);

/// How a decision begins.
pub(super) const DECIDED: CueTable = CueTable::new(
    12,
    &[
        "decided", "we decided", "i decided", "have decided", "chose", "we chose", "i chose",
        "going with", "we're going with", "we are going with", "settled on", "we settled on",
        "we agreed", "agreed to", "opted for", "picked", "we picked", "entschieden",
        "wir haben entschieden", "wir haben uns entschieden", "wir nehmen", "beschlossen",
        "wir bleiben bei", "décidé", "nous avons décidé", "on a décidé", "nous avons choisi",
        "on a choisi", "choisi", "decidimos", "hemos decidido", "se decidió", "elegimos",
        "optamos por", "abbiamo deciso", "deciso", "abbiamo scelto", "scelto", "si è deciso",
        "decidiu se", "foi decidido", "escolhemos", "besloten", "we hebben besloten", "we kiezen",
        "gekozen", "we hebben gekozen",
    ],
);

/// How a decision seems to begin, in a report that is none.
pub(super) const NOT_DECISIONS: CueTable = CueTable::new(13, &["picked up", "decided to wait", "agreed to meet"]);

/// Words of a reason that holds for one person on one day.
pub(super) const NOT_REASONS: &[&str] = &[
    "i", "me", "my", "he", "she", "him", "today", "tomorrow", "ich", "mir", "mich", "heute",
    "morgen", "je", "aujourd'hui", "demain", "yo", "hoy", "mañana", "io", "oggi", "domani", "eu",
    "hoje", "amanhã", "ik", "vandaag",
];

/// A person's verbs and nouns of preference; the words before must name the person.
pub(super) const PREFERS: CueTable = CueTable::new(
    14,
    &[
        "prefers", "prefer", "strongly prefers", "always wants", "always want", "would rather have",
        "likes to", "hates when", "doesn't like", "does not like", "wants every", "never wants",
        "bevorzugt", "bevorzuge", "möchte immer", "will immer", "mag keine", "zieht vor", "préfère",
        "préfèrent", "veut toujours", "n'aime pas", "prefiere", "prefiero", "siempre quiere",
        "no le gusta", "preferisce", "preferisco", "vuole sempre", "non ama", "prefere", "prefiro",
        "quer sempre", "sempre quer", "não gosta de", "geeft de voorkeur aan", "verkiest",
        "wil altijd", "houdt niet van", "wil liever", "heeft liever",
    ],
);

/// Wanting is a wish that lasts where a [`HABIT`] follows.
pub(super) const WANTS: CueTable = CueTable::new(
    15,
    &[
        "wants", "needs", "expects", "asks for", "möchte", "will", "erwartet", "veut", "attend",
        "quiere", "espera", "vuole", "aspetta", "quer", "wil", "verwacht",
    ],
);

/// What makes a wish or a fact one of every day.
pub(super) const HABIT: CueTable = CueTable::new(
    16,
    &[
        "every", "each", "always", "never", "weekly", "daily", "monthly", "mondays", "tuesdays",
        "wednesdays", "thursdays", "fridays", "saturdays", "sundays", "jede", "jeden", "jedes",
        "immer", "nie", "wöchentlich", "täglich", "montags", "freitags", "chaque", "toujours",
        "jamais", "tous les", "toutes les", "cada", "siempre", "nunca", "todos los", "todas las",
        "ogni", "sempre", "mai", "tutti i", "toda", "todo", "todos os", "todas as", "elke", "elk",
        "altijd", "nooit",
    ],
);

/// How a person speaks of themselves.
pub(super) const FIRST_PERSON: &[&str] = &[
    "i", "my", "i'm", "i've", "ich", "mein", "meine", "bevorzuge", "je", "mon", "ma", "mes", "yo",
    "mi", "prefiero", "trabajo", "io", "mio", "mia", "preferisco", "lavoro", "eu", "meu", "minha",
    "prefiro", "trabalho", "ik", "mijn",
];

/// First words of a wish or fact that its owner tells.
pub(super) const FIRST_PERSON_FACTS: CueTable = CueTable::new(
    17,
    &[
        "i prefer", "i always want", "i would rather have", "i work as", "i specialize in",
        "i never want", "i am a", "i am an", "i am the", "i'm a", "i'm an", "i'm the",
    ],
);

/// First words of what is open or supposed.
pub(super) const CONDITIONS: CueTable = CueTable::new(18, &["if", "whether", "when", "confirm", "ob", "wenn", "si", "se", "als", "of"]);

/// What a person has, of which the rest of the sentence says what it is: `Ana's preference for …`.
pub(super) const HAS_PREFERENCE: CueTable = CueTable::new(
    19,
    &[
        "preference for", "standing preference for", "preferred format of", "preferred format is",
        "preference is", "norm is to", "norm is", "preferred style is", "working style is",
        "standing preference is", "standing rule is",
    ],
);

/// Phrases that say a lasting fact about a person, wherever they stand.
pub(super) const PERSON_FACTS: CueTable = CueTable::new(
    21,
    &[
        "my role is", "her role is", "his role is", "their role is", "i work as", "works as",
        "i'm allergic to", "is allergic to", "i am allergic to", "preference is", "i specialize in",
        "specializes in", "is vegetarian", "is vegan", "i'm a vegetarian", "i'm vegan",
        "i'm vegetarian", "norm is to", "likes things", "best reached", "years of experience",
        "my name is", "ich heiße", "je m'appelle", "me llamo", "mi chiamo", "meu nome é",
        "mijn naam is", "ich arbeite als", "arbeitet als", "meine rolle ist", "seine rolle ist",
        "ihre rolle ist", "allergisch gegen", "je travaille comme", "travaille comme",
        "mon rôle est", "son rôle est", "allergique à", "trabajo como", "trabaja como",
        "mi función es", "su función es", "alérgico a", "alérgica a", "lavoro come", "lavora come",
        "il mio ruolo è", "il suo ruolo è", "allergico a", "allergica a", "trabalho como",
        "trabalha como", "meu papel é", "minha função é", "ik werk als", "werkt als", "mijn rol is",
        "zijn rol is", "haar rol is", "allergisch voor",
    ],
);

/// What a person likes best.
pub(super) const FAVORITE: CueTable = CueTable::new(
    22,
    &[
        "my favorite", "my favourite", "mein lieblings*", "meine lieblings*", "mon * préféré",
        "mi * favorito", "mi * favorita", "il mio * preferito", "la mia * preferita",
        "meu * favorito", "minha * favorita", "mijn lievelings*", "mijn favoriete",
    ],
);

/// Present forms of `to be`: a favorite that is, not one that was.
pub(super) const TO_BE_PRESENT: &[&str] =
    &["is", "are", "ist", "sind", "est", "sont", "es", "son", "è", "sono", "é", "são", "zijn"];

/// Half of a preference: what it is must come after a colon.
pub(super) const PREFERENCE_AS: CueTable = CueTable::new(20, &["preference as"]);

/// All of which one must stand where something is told of a person.
pub(super) const PERSON_CUES: &[CueTable] =
    &[PREFERS, WANTS, HAS_PREFERENCE, FAVORITE, PERSON_FACTS, IS_A, FROM_NOW_ON, PREFERENCE_AS];

/// People who are named by what they are.
pub(super) const PERSONS: CueTable = CueTable::new(
    23,
    &[
        "i", "user", "client", "customer", "boss", "manager", "wife", "husband", "owner", "lead",
        "principal", "ich", "nutzer", "nutzerin", "kunde", "kundin", "chefin", "chef", "je", "j'*",
        "cliente", "usuario", "usuaria", "jefe", "jefa", "utente", "capo", "usuário", "usuária",
        "chefe", "ik", "gebruiker", "klant", "baas", "team", "equipo", "équipe", "equipe",
        "squadra",
    ],
);

/// Roles of which a team has one: `Dana is our release manager`.
pub(super) const ROLES: CueTable = CueTable::new(
    38,
    &[
        "head", "scientist", "developer", "programmer", "consultant", "researcher", "nurse",
        "student", "writer", "editor", "accountants", "intern", "founder", "president", "secretary",
        "specialist", "expert", "manager", "lead", "engineer", "owner", "director", "designer",
        "cfo", "ceo", "cto", "coo", "analyst", "counsel", "lawyer", "accountant", "architect",
        "administrator", "maintainer", "assistant", "contact", "chair", "devops", "teacher",
        "doctor", "leiterin", "leiter", "entwicklerin", "entwickler", "ansprechpartnerin",
        "ansprechpartner", "responsable", "directrice", "directeur", "développeuse", "développeur",
        "directora", "desarrolladora", "desarrollador", "gerente", "responsabile", "sviluppatrice",
        "sviluppatore", "direttrice", "direttore", "diretora", "diretor", "desenvolvedora",
        "desenvolvedor", "beheerder", "ontwikkelaar", "contactpersoon",
    ],
);

/// `is our`, `is a`: between a name and a role.
pub(super) const IS_A: CueTable = CueTable::new(
    24,
    &[
        "is our", "is the", "is my", "is a", "is an", "am a", "am an", "am the", "i'm a", "i'm an",
        "i'm the", "ist ein", "ist eine", "est un", "est une", "es un", "es una", "è un", "è una",
        "é um", "é uma", "is een", "ist unsere", "ist unser", "ist die", "ist der", "ist meine",
        "ist mein", "est notre", "est la", "est le", "est mon", "est ma", "es nuestra",
        "es nuestro", "es la", "es el", "es mi", "è la nostra", "è il nostro", "è la", "è il",
        "è la mia", "è il mio", "é a nossa", "é o nosso", "é nossa", "é nosso", "é a", "é o",
        "is onze", "is de", "is mijn",
    ],
);

/// What has a date by which it must be there.
pub(super) const DEADLINE: CueTable = CueTable::new(
    25,
    &[
        "deadline", "hard deadline", "due date", "is due", "are due", "due by", "due on",
        "launch date", "launches on", "release date", "ships on", "goes live", "go live", "go-live",
        "code freeze", "freeze starts", "freeze begins", "merge freeze", "cutoff", "goal", "ziel",
        "objectif", "objetivo", "obiettivo", "doel", "goal is", "target date", "must be done by",
        "must be ready by", "has to be ready by", "expires on", "ends on", "contract ends",
        "renewal date", "abgabe", "abgabetermin", "frist", "stichtag", "fällig am", "ziel ist",
        "spätestens", "läuft ab am", "date limite", "échéance", "au plus tard", "l'objectif est",
        "date de lancement", "fecha límite", "plazo", "a más tardar", "el objetivo es", "vence el",
        "fecha de lanzamiento", "scadenza", "entro il", "l'obiettivo è", "data di lancio",
        "scade il", "prazo", "data limite", "até o dia", "o objetivo é", "data de lançamento",
        "vence em", "uiterlijk", "inleverdatum", "doel is", "loopt af op", "lanceerdatum",
    ],
);

/// Names of months, for dates in words.
pub(super) const MONTHS: CueTable = CueTable::new(
    26,
    &[
        "january", "february", "march", "april", "may", "june", "july", "august", "september",
        "october", "november", "december", "jan", "feb", "mar", "apr", "jun", "jul", "aug", "sep",
        "sept", "oct", "nov", "dec", "januar", "februar", "märz", "mai", "juni", "juli", "oktober",
        "dezember", "janvier", "février", "mars", "avril", "juin", "juillet", "août", "septembre",
        "octobre", "novembre", "décembre", "enero", "febrero", "marzo", "abril", "mayo", "junio",
        "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre", "gennaio", "febbraio",
        "aprile", "maggio", "giugno", "luglio", "settembre", "ottobre", "dicembre", "janeiro",
        "fevereiro", "março", "maio", "junho", "julho", "setembro", "outubro", "novembro",
        "dezembro", "januari", "februari", "maart", "mei", "augustus",
    ],
);

/// Names of weekdays: like a number, a value that a standing fact may change.
pub(super) const WEEKDAYS: &[&str] = &[
    "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "mondays",
    "tuesdays", "wednesdays", "thursdays", "fridays", "saturdays", "sundays", "montag", "dienstag",
    "mittwoch", "donnerstag", "freitag", "samstag", "sonntag", "montags", "dienstags", "mittwochs",
    "donnerstags", "freitags", "samstags", "sonntags", "lundi", "mardi", "mercredi", "jeudi",
    "vendredi", "samedi", "dimanche", "lunes", "martes", "miércoles", "jueves", "viernes", "sábado",
    "domingo", "lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato", "domenica",
    "segunda", "terça", "quarta", "quinta", "sexta", "maandag", "dinsdag", "woensdag", "donderdag",
    "vrijdag", "zaterdag", "zondag", "понедельник", "вторник", "среда", "четверг", "пятница",
    "суббота", "воскресенье", "月曜日", "火曜日", "水曜日", "木曜日", "金曜日", "土曜日", "日曜日",
    "الاثنين", "الثلاثاء", "الأربعاء", "الخميس", "الجمعة", "السبت", "الأحد",
];

/// Words of what went wrong: the lesson that follows has its reason there.
pub(super) const FAILURES: CueTable = CueTable::new(
    27,
    &[
        "failed", "failure", "broke", "broken", "missed", "mistake", "wrong", "lost", "outage",
        "incident", "regression", "forgot", "fehlgeschlagen", "fehler", "ausfall", "verloren",
        "vergessen", "échec", "échoué", "erreur", "panne", "oublié", "falló", "fallo", "error",
        "caída", "perdió", "olvidé", "fallito", "errore", "guasto", "perso", "dimenticato",
        "falhou", "falha", "erro", "queda", "perdeu", "esqueci", "mislukt", "fout", "storing",
        "kwijt", "vergeten",
    ],
);

/// What a link can be of, for it to be worth keeping.
pub(super) const REFERENCE_NOUNS: CueTable = CueTable::new(
    28,
    &[
        "dashboard", "dashboards", "docs", "doc", "spec", "specification", "folder",
        "documentation", "wiki", "runbook", "runbooks", "playbook", "handbook", "tracker",
        "issue tracker", "board", "style guide", "spreadsheet", "shared drive", "drive folder",
        "knowledge base", "guideline", "guidelines", "status page", "portal", "registry", "roadmap",
        "backlog", "design file", "mockups", "api reference", "channel", "calendar", "contact list",
        "price list", "template", "templates", "dokumentation", "handbuch", "übersicht",
        "statusseite", "tabelle", "laufwerk", "richtlinien", "tableau de bord", "manuel",
        "feuille de calcul", "page d'état", "calendrier", "panel", "documentación", "manual",
        "hoja de cálculo", "tablero", "calendario", "cruscotto", "documentazione", "manuale",
        "foglio di calcolo", "bacheca", "painel", "documentação", "planilha", "quadro",
        "documentatie", "handboek", "overzicht", "werkblad", "statuspagina",
    ],
);

/// Between a thing and where it is found.
pub(super) const LIVES_AT: CueTable = CueTable::new(
    29,
    &[
        "is at", "are at", "lives at", "live at", "lives in", "live in", "is in", "are in",
        "can be found", "is found", "found at", "is tracked in", "are tracked in", "is kept in",
        "are kept in", "hosted at", "liegt unter", "liegen unter", "ist unter", "findet sich",
        "steht unter", "zu finden", "se trouve", "se trouvent", "est ici", "disponible à",
        "disponible sur", "está en", "están en", "se encuentra en", "disponible en", "si trova",
        "si trovano", "è su", "disponibile su", "está em", "fica em", "ficam em", "estão em",
        "disponível em", "staat op", "staan op", "is te vinden", "zijn te vinden",
    ],
);

/// Before a link, after the name of a place.
pub(super) const LOCATION_PREPOSITIONS: &[&str] =
    &["at", "under", "on", "unter", "auf", "à", "sur", "en", "su", "em", "op"];

/// Between a thing and the place, named and outside, where it is kept.
pub(super) const STORED_IN: CueTable = CueTable::new(
    30,
    &[
        "is tracked in", "are tracked in", "is kept in", "are kept in", "is documented in",
        "are documented in", "is filed in", "are filed in", "can be found in", "are archived in",
        "is archived in", "wird geführt in", "werden geführt in", "findet sich in",
        "finden sich in", "liegt in", "liegen in", "se trouve dans", "se trouvent dans",
        "est suivi dans", "sont suivis dans", "se encuentra en", "se encuentran en", "se guarda en",
        "se guardan en", "si trova in", "si trovano in", "ficam em", "fica guardado em",
        "encontra se em", "is te vinden in", "zijn te vinden in", "staat in", "staan in",
    ],
);

/// Openers that point at something said before: the statement cannot stand alone.
pub(super) const BACK_REFERENCES: CueTable = CueTable::new(
    31,
    &[
        "it", "it's", "its", "this", "that", "that's", "these", "those", "they", "they're", "their",
        "he", "she", "he's", "she's", "his", "her", "them", "both", "same", "also", "but", "and",
        "then", "so", "which", "such", "there", "here", "however", "otherwise", "instead",
        "because", "since", "still", "or", "nor", "the same", "each of these", "the above",
        "neither", "es", "er", "sie", "dies", "diese", "dieser", "dieses", "aber", "und", "dann",
        "auch", "damit", "dabei", "deshalb", "elle", "ils", "elles", "cela", "ça", "ce", "ceci",
        "c'est", "mais", "et", "donc", "alors", "él", "ella", "ellos", "ellas", "eso", "esto",
        "esta", "este", "pero", "y", "entonces", "también", "esso", "essa", "egli", "lei", "lui",
        "questo", "questa", "ciò", "ma", "quindi", "anche", "ele", "ela", "eles", "elas", "isso",
        "isto", "mas", "então", "também", "hij", "zij", "ze", "dit", "dat", "maar", "dan", "ook",
        "daarom", "dus",
    ],
);

/// Words that make a statement a guess, or tie it to the day.
pub(super) const TRANSIENT: CueTable = CueTable::new(
    32,
    &[
        "maybe", "perhaps", "might", "could", "wonder", "wondering", "probably", "not sure",
        "i think", "for now", "currently", "today", "tonight", "yesterday", "tomorrow",
        "this morning", "this afternoon", "this week", "right now", "so far", "at the moment",
        "temporarily", "hopefully", "seems", "apparently", "unclear", "tbd", "as of now",
        "for the moment", "this time", "not yet", "still", "vielleicht", "könnte", "vermutlich",
        "heute", "gestern", "morgen", "derzeit", "vorerst", "diese woche", "gerade", "momentan",
        "peut-être", "pourrait", "probablement", "aujourd'hui", "hier", "demain", "actuellement",
        "pour l'instant", "cette semaine", "quizás", "tal vez", "podría", "hoy", "ayer", "mañana",
        "por ahora", "esta semana", "actualmente", "forse", "potrebbe", "oggi", "ieri", "domani",
        "per ora", "questa settimana", "attualmente", "talvez", "poderia", "hoje", "ontem",
        "amanhã", "por enquanto", "atualmente", "misschien", "zou kunnen", "vandaag", "gisteren",
        "voorlopig", "deze week", "momenteel", "next week", "next month", "next time",
        "nächste woche", "la semaine prochaine", "la semana que viene", "la próxima semana",
        "la prossima settimana", "semana que vem", "volgende week",
    ],
);

/// Verbs and pronouns of a story: what happened once, to people who are named elsewhere.
pub(super) const NARRATIVE: CueTable = CueTable::new(
    33,
    &[
        "was", "were", "asked", "agreed", "kept", "wanted", "noted", "confirmed", "told",
        "reported", "requested", "remained", "continued", "depended", "said", "replied", "raised",
        "he", "she", "him", "me", "my", "i", "us", "did", "happened", "came", "went", "war",
        "waren", "wurde", "wurden", "fragte", "sagte", "bat", "ihm", "mir", "était", "étaient",
        "demandé", "fue", "fueron", "pidió", "dijo", "preguntó", "fu", "furono", "chiese", "disse",
        "foi", "foram", "pediu", "werd", "werden", "vroeg", "zei",
    ],
);

/// Words of routine and of one task's state.
pub(super) const ROUTINE: CueTable = CueTable::new(
    34,
    &[
        "open loop", "open loops", "no change", "no changes", "no new", "not changed", "remained",
        "unchanged", "none", "pending", "awaiting", "in progress", "tests pass", "tests passed",
        "tests passing", "all tests", "compiles", "build passes", "build clean", "no typed memory",
        "typed memory", "standup", "handed off", "no code changes", "files changed", "working log",
        "line numbers", "loc", "wip", "stub", "no further", "nothing to", "still open", "follow up",
        "follow-up", "lgtm", "merged pr", "no errors", "opened issue", "opened pr", "this session",
        "the session", "wisdom.md", "out of scope", "keine änderung", "keine änderungen",
        "unverändert", "ausstehend", "in arbeit", "tests laufen", "aucun changement", "inchangé",
        "en attente", "en cours", "sin cambios", "pendiente", "en curso", "nessuna modifica",
        "invariato", "in sospeso", "in corso", "sem alterações", "inalterado", "pendente",
        "em andamento", "geen wijzigingen", "ongewijzigd", "in behandeling",
    ],
);

/// Verbs that open the report of something done, beside those in `-ed`.
pub(super) const REPORT_OPENERS: CueTable = CueTable::new(
    35,
    &[
        "kept", "held", "left", "sent", "made", "ran", "wrote", "built", "got", "gave", "took",
        "went", "saw", "told", "set", "put", "found", "met", "read", "re-read", "rewrote", "split",
        "cut", "did", "began", "brought", "caught", "drew", "drove", "fed", "felt", "fixed", "was",
        "were", "had", "has been", "have been", "i", "we", "i've", "we've", "no", "none", "looking",
        "working", "adding", "updating", "fixing", "writing", "trying", "reviewing", "checking",
        "running", "waiting", "testing", "habe", "haben", "wurde", "wurden", "fait", "ajouté",
        "corrigé", "hecho", "añadido", "fatto", "aggiunto", "feito", "adicionado", "gedaan",
        "toegevoegd",
    ],
);

/// Words in `-ing` and `-ed` that open no report.
pub(super) const NOT_REPORTS: &[&str] = &[
    "during", "nothing", "morning", "evening", "billing", "marketing", "staging", "monitoring",
    "onboarding", "pricing", "training", "engineering", "hosting", "branding", "accounting",
    "planning", "reporting", "according", "anything", "everything", "something", "meeting",
    "meetings", "building", "need", "indeed", "embed", "shared", "embedded", "related", "limited",
    "speed", "feed",
];

/// Openers of a task still to be done, or of one step.
pub(super) const TASK_OPENERS: CueTable = CueTable::new(
    36,
    &[
        "await", "wait", "confirm", "monitor", "reconcile", "finish", "finalize", "prepare",
        "review", "check", "verify", "update", "fix", "add", "implement", "investigate", "watch",
        "follow", "send", "schedule", "ask", "need", "needs", "todo", "continue", "test", "run",
        "deploy", "merge", "rebase", "refactor", "write", "draft", "create", "remove", "rename",
        "bump", "move", "restart", "rebuild", "install", "upgrade", "see", "track", "open", "close",
        "complete", "resolve", "decide", "explore", "warten", "prüfen", "klären", "fertigstellen",
        "vérifier", "attendre", "finir", "revisar", "esperar", "terminar", "verificare",
        "attendere", "finire", "verificar", "aguardar", "controleren", "wachten", "afmaken",
    ],
);

/// What makes a recurring statement a limit, a habit, or a rule that stands.
pub(super) const LASTING_LIMITS: CueTable = CueTable::new(
    37,
    &[
        "stays at", "remains at", "is fixed at", "reserved", "protected", "hard block*",
        "non-negotiable", "only if", "only when", "unless", "at least", "at most", "no more than",
        "no later than", "no earlier than", "requires", "required", "limit", "cap", "ceiling",
        "floor", "minimum", "maximum", "threshold", "policy", "approval", "must be", "is reserved",
        "every day", "every week", "every monday", "every friday", "owner", "default", "up to",
        "not before", "no meetings", "before anything", "reports to", "is capped", "quota",
        "before any", "by default", "format is", "bleibt bei", "reserviert", "geschützt",
        "nur wenn", "außer", "mindestens", "höchstens", "grenze", "obergrenze", "jede woche",
        "reste à", "réservé", "protégé", "seulement si", "sauf", "au moins", "au maximum",
        "plafond", "plancher", "chaque semaine", "se queda en", "reservado", "protegido", "solo si",
        "salvo", "al menos", "como máximo", "límite", "cada semana", "resta alle", "resta a",
        "riservato", "protetto", "solo se", "tranne", "almeno", "al massimo", "limite",
        "ogni settimana", "fica em", "somente se", "exceto", "pelo menos", "no máximo",
        "toda semana", "blijft op", "gereserveerd", "beschermd", "alleen als", "tenzij", "minstens",
        "hoogstens", "grens", "elke week",
    ],
);

/// Words that say little: not counted when two statements are compared, nor in a topic.
pub(super) const STOP_WORDS: &[&str] = &[
    "a", "an", "the", "and", "or", "but", "if", "of", "to", "in", "on", "at", "by", "for", "with",
    "from", "as", "is", "are", "was", "were", "be", "been", "being", "it", "its", "it's", "this",
    "that", "these", "those", "i", "we", "you", "he", "she", "they", "my", "our", "your", "his",
    "her", "their", "so", "not", "no", "do", "does", "did", "has", "have", "had", "will", "would",
    "can", "just", "than", "then", "when", "which", "who", "what", "into", "about", "over", "also",
    "any", "all", "because", "should", "must", "there", "more", "very", "up", "out", "s", "since",
    "instead", "rather", "der", "die", "das", "und", "oder", "ein", "eine", "einen", "einem",
    "den", "dem", "des", "ist", "sind", "war", "im", "am", "zu", "mit", "von", "für", "auf",
    "nicht", "wir", "ich", "es", "sich", "auch", "wird", "werden", "weil", "le", "la", "les", "un",
    "une", "et", "ou", "du", "de", "est", "sont", "dans", "pour", "par", "avec", "sur", "que",
    "qui", "ne", "pas", "nous", "je", "il", "elle", "au", "aux", "car", "el", "los", "las", "una",
    "y", "o", "del", "en", "con", "por", "para", "se", "lo", "al", "porque", "gli", "uno", "e",
    "di", "da", "che", "non", "per", "si", "è", "nel", "della", "dei", "perché", "os", "um", "uma",
    "dos", "em", "não", "com", "na", "pois", "het", "een", "van", "op", "te", "met", "voor",
    "zijn", "niet", "dat", "ik", "omdat",
];

#[cfg(test)]
mod tests {
    use super::ALL_TABLES;

    #[test]
    fn every_table_is_listed() {
        let constructed = include_str!("cue_phrases.rs").matches("CueTable::new(").count();
        // The literal in this test is one of the matches.
        assert_eq!(constructed - 1, ALL_TABLES.len());
    }
}
