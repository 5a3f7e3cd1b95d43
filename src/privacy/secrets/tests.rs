//! Tests of the secret rules: what they find, in which texts, and at what cost.

use proptest::{
    prelude::*, strategy::ValueTree as _, string::string_regex, test_runner::TestRunner,
};

use super::*;
use crate::privacy::work_counter::check_linear;
use rules::{SecretRuleEntry, check_examples, check_expression, entries, join_example};

/// The built-in rules as they are written.
const FILE: &str = include_str!("../../../config/secrets.yaml");

/// Lines as people and agents write them; `{}` is replaced by a value.
const SENTENCES: [&str; 12] = [
    "- Rotated the key after the review, the new one is {} until May.",
    "Deployed with `{}` and it went through.",
    "```sh\ncurl -sS https://api.acme.net/v2/items -H \"X-Auth: {}\"\n```",
    "ACME_VALUE={}",
    "export ACME_VALUE=\"{}\" # for staging",
    "{\"name\": \"staging\", \"value\": \"{}\", \"ttl\": 3600}",
    "> Mara pasted {} into the channel",
    "  value: {}\n  ttl: 3600",
    "| staging | {} | works |",
    "Log of 2026-04-02: connect failed ({}), see #412",
    "{\"line\":\"first\\n{}\\nlast\"}",
    "GET /v2/items?key={}&page=2 HTTP/1.1",
];

/// Values identified only by the words around them: kind, text before, form, text after.
const BY_CONTEXT: [(&str, &str, &str, &str); 24] = [
    ("aws-secret-key", "aws_secret_access_key = ", "[0-9A-Za-z/+]{40}", ""),
    (
        "azure-storage-key",
        "AccountName=mara;AccountKey=",
        "[0-9A-Za-z+/]{86}==",
        ";EndpointSuffix=core",
    ),
    (
        "azure-sas-signature",
        "https://mara.blob.core.windows.net/b?sv=2024-11-04&sig=",
        "[0-9A-Za-z]{43}%3D",
        "",
    ),
    ("azure-client-secret", "client secret ", "[0-9A-Za-z]{3}8Q~[0-9A-Za-z_.-]{33}[0-9a-z]", ""),
    ("cloudflare-token", "CLOUDFLARE_API_TOKEN=", "[0-9A-Za-z_-]{40}", ""),
    (
        "heroku-key",
        "HEROKU_API_KEY=",
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "",
    ),
    ("terraform-token", "token = \"", "[0-9A-Za-z]{14}\\.atlasv1\\.[0-9A-Za-z]{67}", "\""),
    (
        "slack-webhook",
        "https://hooks.slack.com/services/",
        "T[0-9A-Z]{10}/B[0-9A-Z]{10}/[0-9A-Za-z]{24}",
        "",
    ),
    ("discord-webhook", "https://discord.com/api/webhooks/", "[0-9]{18}/[0-9A-Za-z_-]{68}", ""),
    (
        "discord-bot-token",
        "DISCORD_TOKEN=",
        "M[0-9A-Za-z]{23}\\.[0-9A-Za-z]{6}\\.[0-9A-Za-z]{38}",
        "",
    ),
    (
        "telegram-bot-token",
        "https://api.telegram.org/bot",
        "[1-9][0-9]{9}:AA[0-9A-Za-z_-]{33}",
        "/getMe",
    ),
    ("twilio-auth-token", "TWILIO_AUTH_TOKEN=", "[0-9a-f]{32}", ""),
    ("mailchimp-key", "mailchimp ", "[0-9a-f]{32}-us[1-9]", ""),
    ("datadog-key", "DD_API_KEY: ", "[0-9a-f]{32}", ""),
    ("gcp-service-account-key", "\"private_key_id\": \"", "[0-9a-f]{40}", "\","),
    ("url-password", "postgres://app:", "[0-9A-Za-z!$%^]{8,20}", "@db.internal:5432/app"),
    (
        "authorization-header",
        "curl -H 'Authorization: Bearer ",
        "[0-9A-Za-z_-]{32}",
        "' https://api.acme.net",
    ),
    ("cookie", "Set-Cookie: ", "sid=[0-9a-zA-Z]{32}", "; Path=/"),
    ("session-id", "PHPSESSID=", "[0-9a-z]{12}[g-z]{2}[0-9a-z]{12}", ""),
    ("npmrc-auth", "//npm.acme.net/:_authToken=", "[0-9A-Za-z]{36}", ""),
    ("password", "DB_PASSWORD=", "[0-9A-Za-z!?%+]{8,20}", ""),
    ("password", "Das Passwort lautet: ", "[A-Z][a-z]{5}[0-9]{3}[!?]", ""),
    ("secret-assignment", "\"api_key\": \"", "[0-9A-Za-z]{24,40}", "\""),
    ("high-entropy-string", "the new secret for staging (", "[0-9A-Za-z]{32,48}", ") works"),
];

/// The rules with prefixes.
fn prefixed() -> Vec<SecretRuleEntry> {
    let is_token = |it: &SecretRuleEntry| {
        it.body.as_ref().is_some_and(|body| !body.contains(r"\s")) && it.id != "phone"
    };
    entries(FILE).into_iter().filter(is_token).collect()
}

fn sample(runner: &mut TestRunner, form: &str) -> String {
    string_regex(form).unwrap().new_tree(runner).unwrap().current()
}

/// Ten values of a kind, the same on every run.
fn tokens(runner: &mut TestRunner, entry: &SecretRuleEntry) -> Vec<String> {
    let prefixes = entry.prefixes.iter().cycle();
    let body = entry.body.as_ref().unwrap();
    prefixes.take(10).map(|prefix| format!("{prefix}{}", sample(runner, body))).collect()
}

fn hides(text: &str, value: &str) -> bool {
    let start = text.find(value).unwrap();
    let end = start + value.len();
    let found = SecretRules::built_in().find(text);
    found.iter().any(|it| !it.is_personal && it.range.start <= start && it.range.end >= end)
}

#[test]
fn every_rule_finds_its_examples_and_no_clean_one() {
    let rules = SecretRules::built_in();
    let all = entries(FILE);
    assert!(all.len() > 60, "there should be a rule for each common maker of keys");
    let mut wrong: Vec<_> = rules
        .0
        .rules
        .iter()
        .filter_map(|it| check_expression(it).err())
        .map(|it| it.to_string())
        .collect();
    for mut entry in all {
        let examples = &mut entry.examples;
        assert!(!examples.secret.is_empty() && !examples.clean.is_empty(), "{}", entry.id);
        for text in examples.secret.iter_mut().chain(&mut examples.clean) {
            *text = join_example(text);
        }
        wrong.extend(check_examples(&rules.0, &entry).err().map(|it| it.to_string()));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_file_of_rules_contains_no_key_that_a_scanner_would_report() {
    let found = SecretRules::built_in().find(FILE);
    let keys: Vec<_> = found
        .iter()
        .filter(|it| prefixed().iter().any(|entry| entry.id == *it.kind))
        .map(|it| &FILE[it.range.clone()])
        .collect();
    assert!(keys.is_empty(), "split these with `¦`: {keys:#?}");
}

#[test]
fn tokens_with_a_prefix_are_found_in_any_context() {
    let mut runner = TestRunner::deterministic();
    let kinds = prefixed();
    let mut missed = Vec::new();
    let mut all = 0;
    for entry in &kinds {
        for (value, sentence) in
            tokens(&mut runner, entry).iter().zip(SENTENCES.iter().cycle().skip(all % 12))
        {
            let text = sentence.replace("{}", value);
            all += 1;
            if !hides(&text, value) {
                missed.push(format!("{}: {text}", entry.id));
            }
        }
    }
    assert!(kinds.len() >= 40 && all >= 400, "{} kinds, {all} values", kinds.len());
    assert!(missed.len() * 100 <= all, "{} of {all}: {missed:#?}", missed.len());
}

#[test]
fn values_identified_by_the_words_around_them_are_found() {
    let mut runner = TestRunner::deterministic();
    let mut missed = Vec::new();
    for (kind, before, form, after) in BY_CONTEXT {
        for _ in 0..10 {
            let value = sample(&mut runner, form);
            let text = format!("- 10:12 {before}{value}{after}\n- next");
            if !hides(&text, &value) {
                missed.push(format!("{kind}: {text}"));
            }
        }
    }
    assert!(missed.len() * 50 <= BY_CONTEXT.len() * 10, "{}: {missed:#?}", missed.len());
}

/// Shapes of secrets in notes, and made-up values.
const SHAPES: &str = include_str!("../../../tests/data/secrets/shapes.tsv");

/// Returns the texts of [`SHAPES`], each with its value.
fn shapes() -> Vec<(String, String)> {
    let rows = SHAPES.lines().filter(|it| !it.starts_with('#'));
    let rows = rows.map(|row| {
        let (shape, value) = row.split_once('\t').unwrap();
        let (shape, value) = (join_example(shape), join_example(value));
        (shape.replace("\\n", "\n").replace("{}", &value), value)
    });
    rows.collect()
}

#[test]
fn secrets_in_the_shapes_of_real_notes_are_found() {
    let shapes = shapes();
    assert!(shapes.len() >= 60, "{}", shapes.len());
    let all: Vec<_> = shapes.iter().map(|it| it.0.as_str()).collect();
    let all = format!("# Notes\n\n{}\n", all.join("\n\n"));
    let mut missed = Vec::new();
    for (text, value) in &shapes {
        let alone = format!("# Notes\n\n{text}\n- next item\n");
        if !hides(&alone, value) || !hides(&all, value) {
            missed.push(alone);
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn a_placeholder_is_no_secret_again() {
    for (text, value) in shapes() {
        for found in SecretRules::built_in().find(&text) {
            let masked = text.replace(&text[found.range], &format!("[secret:{}#3fa9]", found.kind));
            let again = SecretRules::built_in().find(&masked);
            let again = again.into_iter().find(|it| masked[it.range.clone()].contains("#3fa9"));
            assert!(again.is_none(), "{value}: {masked}: {again:?}");
        }
    }
}

#[test]
fn only_evident_placeholders_excuse_a_prefix_of_keys() {
    for (prefix, placeholder) in [
        ("sk-ant-", "api03-YOUR_KEY_HERE"),
        ("sk-proj-", "xxxxxxxxxxxxxxxxxxxxxxxx"),
        ("xoxb-", "…"),
    ] {
        let found = SecretRules::built_in().find(&format!("set it to {prefix}{placeholder} first"));
        assert!(found.is_empty(), "{prefix}{placeholder}: {found:?}");
        for value in ["api03-1111111111111111111111", "abababababababababababababababab"] {
            let token = format!("{prefix}{value}");
            assert!(hides(&format!("set it to {token} first"), &token), "{token}");
        }
    }
}

#[test]
fn an_address_behind_a_label_is_no_credential() {
    for label in ["account", "login", "Token", "credentials", "Password", "auth", "账号", "логин"]
    {
        for text in [
            format!("- **{label}:** mara2.l@acme.net"),
            format!("## {label}\n\n- `mara2.l@acme.net` — active"),
            format!("| {label} |\n|---|\n| mara2.l@acme.net |"),
        ] {
            check(&text, "email", "mara2.l@acme.net");
        }
    }
}

#[test]
fn a_password_ends_where_it_ends() {
    for (text, value) in [
        ("password: k9Rt7,xQ3 and more", "k9Rt7,xQ3"),
        ("password: tr0ub4dor, then login", "tr0ub4dor"),
        ("password=tr0ub4dor;user=mara", "tr0ub4dor"),
        ("密码：tr0ub4dor，然后登录", "tr0ub4dor"),
        ("Password: `tr0ub, 4dor`, v2", "tr0ub, 4dor"),
    ] {
        check(text, "password", value);
    }
}

#[test]
fn a_token_over_two_lines_is_masked_to_its_end() {
    let breaks = ["\n", "\n    ", " \\\n  ", "\r\n", "\n> "];
    let mut runner = TestRunner::deterministic();
    let mut missed = Vec::new();
    let mut all = 0;
    for entry in prefixed() {
        for (value, line_end) in tokens(&mut runner, &entry).iter().zip(breaks.iter().cycle()) {
            let prefix =
                entry.prefixes.iter().filter(|it| value.starts_with(*it)).map(String::len).max();
            let prefix = prefix.unwrap();
            let (head, tail) = value.split_at(prefix + (value.len() - prefix) / 2);
            let broken = format!("{head}{line_end}{tail}");
            let text = format!("> the new one is {broken}\n> and it works");
            all += 1;
            if !hides(&text, &broken) {
                missed.push(format!("{}: {text}", entry.id));
            }
        }
    }
    assert!(missed.len() * 100 <= all, "{} of {all}: {missed:#?}", missed.len());
}

#[test]
fn a_complete_token_at_the_end_of_a_line_does_not_extend_into_the_next() {
    let key = format!("sk-ant-{}", "q7Rw2mZx9LtP".repeat(3));
    for next in ["and it works", "- next item", "v2 of it works", "9c1f2ab04d7e it was"] {
        let text = format!("- the key {key}\n  {next}");
        let found = SecretRules::built_in().find(&text);
        let seen: Vec<_> = found.iter().map(|it| &text[it.range.clone()]).collect();
        assert_eq!(seen, [key.as_str()]);
    }
}

#[test]
fn a_private_key_is_masked_completely_and_no_line_after_it() {
    let line = "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtz";
    let head = format!("-----BEGIN {} KEY-----", "OPENSSH PRIVATE");
    let end = format!("-----END {} KEY-----", "OPENSSH PRIVATE");
    for (block, after) in [
        (format!("{head}\n{line}\n{line}\nc2hvcnQ=\n{end}"), "\nThen it went on."),
        (format!("{head}\n  {line}\n  {line}"), "\nThe paste ended there."),
        (format!("{head}\\n{line}\\n{line}\\n{end}"), "\\n\", \"id\": 4}"),
        (format!("{head}\n> {line}\n> {end}"), "\n> quoted on"),
        (head.clone(), "\nwas all that stood there"),
    ] {
        let text = format!("before {block}{after}");
        let found = SecretRules::built_in().find(&text);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!((&*found[0].kind, &text[found[0].range.clone()]), ("private-key", &block[..]));
    }
}

#[track_caller]
fn check(text: &str, kind: &str, value: &str) {
    let found = SecretRules::built_in().find(text);
    let seen: Vec<_> = found.iter().map(|it| (&*it.kind, &text[it.range.clone()])).collect();
    assert_eq!(seen, [(kind, value)], "{text}");
}

#[test]
fn the_most_specific_rule_determines_the_kind_and_a_value_has_one_range() {
    let token = format!("ghp_{}", "q7Rw2mZx9LtPa4Vb8Nc1".repeat(2));
    for text in [
        token.clone(),
        format!("token={token}"),
        format!("GITHUB_TOKEN: \"{token}\","),
        format!("Authorization: Bearer {token}"),
        format!("git clone https://{token}@github.com/acme/app.git"),
        format!("https://mara:{token}@github.com/acme/app.git"),
        format!("the secret is `{token}`"),
    ] {
        check(&text, "github-token", &token);
    }
    check("mail mara.l@acme.net", "email", "mara.l@acme.net");
    check("postgres://mara:hun+ter2@acme.net/db", "url-password", "hun+ter2");
}

#[test]
fn text_without_secrets_has_no_matches() {
    for text in [
        "- Merged 9c1f2ab04d7e6f589c1f2ab04d7e6f589c1f2ab0, key file renamed",
        "job 3f2b8c1e-0d4a-4c59-9e7b-5a1d2c3b4e5f failed, token bucket empty",
        "blake3 9c1f2ab04d7e6f589c1f2ab04d7e6f589c1f2ab04d7e6f589c1f2ab04d7e6f58 of the secrets file",
        "secret: [secret:github-token#3fa9], see [2026-04-02:12]",
        "password=[secret:password#3fa9] and Bearer [secret:jwt#00ab]",
        "Password for the new portal is [secret:password#3fa9] (2026-04-02)",
        "The token of the bank is [secret:secret-assignment#3fa9]",
        "token=${GITHUB_TOKEN} password=$PGPASSWORD key=<your-key> secret=*** api_key=xxxxxxxxxxxx",
        "The password flow: reset, confirm, done. Tokens: 128000 of 200000.",
        "api_key = os.environ[\"ACME_KEY_V2\"]",
        "let secret = config.load_secret(path2)?;",
        "- Secret rotation moved to src/privacy/secrets/rules.rs:120",
        "auth: switched from sha256 to blake3, key size 32",
        "Upgraded to v1.2.3-beta.4, token-count 12345678901234",
        "sk-learn, hf_hub, npm_config_registry_url, cio, pat, SK, eyJ",
        "ssh git@github.com:acme/app.git, icon@2x.png, @mara",
        "+1 for that; +12345 lines; from 2026-04-02 to 2026-04-09; call 112",
        "Geheimnis des Erfolgs: ausdauer-und-geduld; mot de passe: oublié",
        "session: 20260402-101500 (CMEM-20260402-101500), key: value",
    ] {
        let found = SecretRules::built_in().find(text);
        assert!(found.is_empty(), "{text}: {found:?}");
    }
}

#[test]
fn personal_data_is_distinguished_from_credentials() {
    for (text, kind) in [
        ("wrote to mara.l@acme.net", "email"),
        ("call +49 170 1234567", "phone"),
        ("pay to DE89 3704 0044 0532 0130 00", "iban"),
        ("card 4242 4242 4242 4242", "card-number"),
    ] {
        let found = SecretRules::built_in().find(text);
        assert!(found.len() == 1 && *found[0].kind == *kind && found[0].is_personal, "{found:?}");
    }
}

#[test]
fn the_user_can_add_replace_turn_off_and_allow() {
    let yaml = "
rules:
  - id: acme-key
    prefixes: [acme_]
    body: '[0-9a-f]{16}'
    examples: { secret: [acme_9c1f2ab04d7e6f58], clean: [acme_corp] }
  - id: email
    keywords: [ext-]
    regex: 'ext-[0-9]{4}'
    personal: true
off: [phone]
allow:
  - '/^acme_0+$/'
  - Hunter-2
";
    let rules = SecretRules::with_user(yaml).unwrap();
    let text = "acme_9c1f2ab04d7e6f58 acme_0000000000000000 a@acme.net ext-1234 +49 170 1234567
        password=hunter-2 password=hunter-3";
    let seen: Vec<_> =
        rules.find(text).into_iter().map(|it| (it.kind.to_string(), &text[it.range])).collect();
    let expected =
        [("acme-key", "acme_9c1f2ab04d7e6f58"), ("email", "ext-1234"), ("password", "hunter-3")];
    assert_eq!(seen, expected.map(|(kind, value)| (kind.to_owned(), value)));
    for empty in ["", "# nothing yet\n", "rules: []"] {
        let kinds = SecretRules::with_user(empty).unwrap().kinds().count();
        assert_eq!(kinds, SecretRules::built_in().kinds().count());
    }
}

#[test]
fn invalid_rules_are_reported_with_the_reason() {
    for (yaml, says) in [
        ("rules: 4", "cannot be read"),
        ("rule: []", "unknown field `rule`"),
        ("rules: [{id: A b, keywords: [x], regex: x}]", "rule `A b`: an id consists of a-z"),
        (
            "rules: [{id: a, keywords: [x], regex: x}, {id: a, keywords: [x], regex: x}]",
            "two rules have this id",
        ),
        ("rules: [{id: a, prefixes: [x], regex: x}]", "give `prefixes` and `body`"),
        ("rules: [{id: a}]", "give `prefixes` and `body`"),
        ("rules: [{id: a, keywords: [''], regex: x}]", "at least one character"),
        ("rules: [{id: a, keywords: [Xy], regex: x}]", "in lower case"),
        (
            "rules: [{id: a, keywords: [x], regex: '(?=x)'}]",
            "rule `a`: its expression does not compile",
        ),
        ("rules: [{id: a, keywords: [x], regex: '((a{500}){500}){500}'}]", "does not compile"),
        (
            "rules: [{id: a, keywords: [x], regex: 'x(y)', group: 2}]",
            "no group 2 in its expression; it has 1",
        ),
        (
            "rules: [{id: a, keywords: [x], regex: 'x', examples: {secret: [y]}}]",
            "example 1 of a secret",
        ),
        (
            "rules: [{id: a, keywords: [x], regex: 'x', examples: {clean: [y, x]}}]",
            "clean example 2",
        ),
        ("allow: ['/(/']", "entry 1 of `allow` does not compile"),
        ("off: [phones]", "`off` names `phones`"),
    ] {
        let error = SecretRules::with_user(yaml).unwrap_err().to_string();
        assert!(error.contains(says), "{yaml}: {error}");
    }
    let long = "#".repeat(300 * 1024);
    assert!(SecretRules::with_user(&long).unwrap_err().to_string().contains("longer than 256 KiB"));
}

/// Each text was chosen to make a rule read the same bytes repeatedly. A rule may read 16 KiB ahead.
#[test]
fn the_cost_of_a_repetitive_text_is_linear() {
    let rules = SecretRules::built_in();
    let repeated = [
        "a",
        "=",
        "0",
        "4242 ",
        "eyJ",
        "eyJ.",
        "eyJaaaaaaaaaaaaa.",
        "-----BEGIN ",
        "DE89 ",
        "+1 ",
        "@",
        "a@a.",
        "sk-",
        "ghp_\n",
        "ghp_abcdef\n",
        "AKIA\n",
        "fm2_+",
        "xoxb-%",
        "password=",
        "password=\"",
        "token ",
        "Cookie: a=",
        "authorization: ",
        "http://a:",
        "-----BEGIN PRIVATE KEY-----\n",
        "curl -u ",
        "密码:",
        "%41eyJ",
        "machine a login b password ",
        "\\nghp_",
        "login: a / ",
        "user: a1,",
        "password: a1,b2,",
        "| a1 | password | a1b2c3d4 |\n",
        "| token | 12 ",
        "brave 密钥 ",
        "sk-live_a1",
        "парол",
        "\\é",
    ];
    for text in repeated {
        check_linear(text, 48_000, |text| {
            for found in rules.find(text) {
                assert!(found.range.end <= text.len(), "{}", found.kind);
            }
        });
    }
}

/// Texts of any characters, with parts of secrets in them.
fn texts() -> impl Strategy<Value = String> {
    let literals: Vec<String> = prefixed()
        .into_iter()
        .flat_map(|it| it.prefixes)
        .chain(
            [
                "password=",
                "token: ",
                "://a:",
                "@",
                "-----BEGIN PRIVATE KEY-----",
                "Cookie: a=",
                "+49",
                "\n",
                "\r\n> ",
                " \\\n",
            ]
            .map(str::to_owned),
        )
        .collect();
    let piece = prop_oneof![
        prop::sample::select(literals),
        any::<String>(),
        "[0-9A-Za-z_./+=-]{1,60}",
        "\\PC{0,20}",
        Just("é密\u{202e}".to_owned()),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|it| it.concat())
}

proptest! {
    #[test]
    fn ranges_contain_whole_characters_and_are_sorted_and_disjoint(text in texts()) {
        let mut at = 0;
        for found in SecretRules::built_in().find(&text) {
            prop_assert!(found.range.start >= at && !found.range.is_empty());
            prop_assert!(text.get(found.range.clone()).is_some());
            at = found.range.end;
        }
    }
}
