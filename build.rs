//! Writes the rules and word lists of `config/` as JSON beside the compiled program: its hooks read them at each start,
//! and reading YAML would take a good part of their time. Texts are unchanged, maps keep their order.

use std::{env, error::Error, fs, path::Path};

/// Files below `config/`, or folders of such files.
const SOURCES: [&str; 3] = ["lexicon", "quarantine.yaml", "secrets.yaml"];

fn main() -> Result<(), Box<dyn Error>> {
    let out = env::var("OUT_DIR")?;
    for source in SOURCES {
        let path = Path::new("config").join(source);
        println!("cargo::rerun-if-changed={}", path.display());
        if path.is_file() {
            write_json(&path, Path::new(&out))?;
            continue;
        }
        let mut files = Vec::new();
        for entry in fs::read_dir(&path).map_err(|it| format!("{}: {it}", path.display()))? {
            files.push(entry?.path());
        }
        files.retain(|it| it.extension().is_some_and(|it| it == "yaml"));
        for file in files {
            write_json(&file, Path::new(&out))?;
        }
    }
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "cargo starts a broken build from the beginning")]
fn write_json(yaml: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    let in_file = |it: &dyn Error| format!("{}: {it}", yaml.display());
    let text = fs::read_to_string(yaml).map_err(|it| in_file(&it))?;
    let value: serde_yaml::Value = serde_yaml::from_str(&text).map_err(|it| in_file(&it))?;
    let name = yaml.with_extension("json");
    let name = name.file_name().ok_or("a file without a name")?;
    fs::write(out.join(name), serde_json::to_string(&value)?)?;
    Ok(())
}
