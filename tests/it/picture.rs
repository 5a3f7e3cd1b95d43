//! The recorded terminal in the README shows what the program prints today.

use std::{fs, path::Path, process::Command};

use crate::support::{NOW, Root};

/// A command of the picture, and the pieces of text that it shows as its output.
#[derive(Debug)]
struct Scene {
    command: String,
    pieces: Vec<String>,
}

fn read(relative: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(relative);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{relative}: {e}"))
}

/// Returns the texts of a picture with their classes.
fn texts(svg: &str) -> impl Iterator<Item = (&str, String)> {
    svg.split("<text").skip(1).map(|element| {
        let (attributes, rest) = element.split_once('>').unwrap();
        let class = attributes.split_once("class=\"").map_or("", |it| it.1);
        let text = rest.split("</text>").next().unwrap();
        let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
        (class.split('"').next().unwrap(), text)
    })
}

/// Returns the commands: each is in a group of class `p…`, its output in the group of class `o…` after it.
fn scenes(svg: &str) -> Vec<Scene> {
    let groups = svg.split("<g class=\"p").skip(1).map(|it| it.split_once("<g class=\"o").unwrap());
    let scenes = groups.map(|(command, output)| {
        let output = output.split("</g>").next().unwrap();
        Scene {
            command: texts(command).find(|it| it.0 == "c").unwrap().1,
            // Only a terminal has lines of a tree beside wrapped text.
            pieces: texts(output).map(|it| it.1).filter(|it| it != "│").collect(),
        }
    });
    scenes.collect()
}

#[test]
fn the_recorded_terminal_shows_what_the_program_prints() {
    let svg = read("docs/src/demo.svg");
    let scenes = scenes(&svg);
    assert!(scenes.iter().any(|it| it.command == "memoird compact"), "{scenes:#?}");

    let root = Root::new("mara");
    let program = Path::new(assert_cmd::cargo::cargo_bin!("memoird"));
    let programs = program.parent().unwrap().to_str().unwrap();
    for Scene { command, pieces } in scenes {
        let output = Command::new("/bin/sh")
            .args(["-c", &command])
            .env_clear()
            .env("PATH", format!("{programs}:/usr/bin:/bin"))
            .env("HOME", root.home(""))
            .env("TZ", "Europe/Berlin")
            .env("MEMOIRD_NOW", NOW)
            .current_dir(root.path(""))
            .output()
            .unwrap();
        let printed = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        let printed = printed.concat();
        let missing: Vec<_> = pieces.iter().filter(|it| !printed.contains(&***it)).collect();
        assert!(
            !pieces.is_empty() && missing.is_empty(),
            "docs/src/demo.svg is out of date; draw it with `docs/picture/record.py --memoird \
             target/debug/memoird`\n$ {command}\n{printed}\nno longer printed: {missing:#?}"
        );
    }
}

#[test]
fn the_still_picture_is_a_part_of_the_animated_one_and_both_are_shown() {
    let (animated, still) = (read("docs/src/demo.svg"), read("docs/src/demo-still.svg"));
    let all: Vec<_> = texts(&animated).collect();
    assert!(texts(&still).count() > 10 && texts(&still).all(|it| all.contains(&it)));
    for name in ["docs/src/demo.svg", "docs/src/demo-still.svg"] {
        assert!(read("README.md").contains(&format!("=\"{name}\"")), "{name}");
    }
    assert!(read("docs/src/introduction.md").contains("](demo.svg)"));
}
