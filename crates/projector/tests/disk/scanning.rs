//! What a whole scan finds.

use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use projector::scan::scan;
use projector::workspace::ObservedKind;

use crate::fixture::{Home, at, listing};

#[test]
fn files_links_and_empty_folders_come_in_order() {
    let home = Home::new();
    home.write("b/c", "x").write("b.txt", "x").write("a", "12345").folder("empty/inner").folder("B");
    home.link("../a", "b/link").write(".hidden/x", "x");
    assert_eq!(
        listing(&home.scan()),
        [".hidden/x", "B/", "a", "b.txt", "b/c", "b/link -> ../a", "empty/inner/"]
    );
    let found = home.scan();
    assert_eq!(found.get(&at("a")).unwrap().kind, ObservedKind::File { size: 5, mode: 0o644 });
    assert_eq!(found.get(&at("a")), home.workspace.observe(&at("a")).unwrap().as_ref());
    assert_eq!(found.get(&at("empty")), None);
}

#[test]
fn the_users_repository_is_a_folder_like_any_other() {
    let home = Home::new();
    home.write(".git/HEAD", "ref").write(".git/logs/HEAD", "x").write(".git/info/exclude", "*.c\n");
    home.write("main.c", "x").write(".gitignore", "logs/\n.*\nHEAD\n!.gitignore\n");
    assert_eq!(
        listing(&home.scan()),
        [".git/HEAD", ".git/info/exclude", ".git/logs/HEAD", ".gitignore", "main.c"]
    );
    home.write(".choirignore", ".git/\n");
    assert_eq!(listing(&home.scan()), [".gitignore", "main.c"]);
}

#[test]
fn ten_thousand_files_come_sorted() {
    let home = Home::new();
    home.write("first", "");
    let mut expected = vec!["first".to_owned()];
    for folder in 0..100 {
        let folder = format!("f{}/{}", folder % 10, folder / 10);
        home.folder(&folder);
        for file in 0..100 {
            let path = format!("{folder}/{file}.txt");
            home.second_name("first", &path);
            expected.push(path);
        }
    }
    expected.sort();
    assert_eq!(listing(&home.scan()), expected);
}

#[test]
fn a_folder_that_cannot_be_read_is_not_taken_for_empty() {
    let home = Home::new();
    home.write("ok", "x").write("closed/x", "x");
    let closed = home.on_disk("closed");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o000)).unwrap();
    let found = home.scan();
    let as_root = rustix::process::geteuid().is_root();
    assert_eq!(found.covers(&at("closed/x")), as_root);
    assert_eq!(found.skipped.is_empty(), as_root);
    assert!(found.covers(&at("ok")) && found.covers(&at("gone")));
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// `cargo test --release -p projector --test disk measure -- --ignored --nocapture`
#[test]
#[ignore = "a measurement: makes 100,000 files"]
fn measure_a_hundred_thousand_files() {
    let home = Home::new();
    for folder in 0..2_000 {
        for file in 0..50 {
            home.write(
                &format!("top{}/folder{}/source_{file}.rs", folder / 100, folder % 100),
                "fn main() {}",
            );
        }
    }
    home.write(".gitignore", "target/\n*.o\n/build\n!keep.o\n");
    let known = home.scan().entries.into_iter().map(|(path, _)| path).collect::<Vec<_>>();
    for _ in 0..5 {
        let start = Instant::now();
        let found = scan(&home.workspace, &known).unwrap();
        println!("{} entries in {:?}", found.entries.len(), start.elapsed());
    }
}
