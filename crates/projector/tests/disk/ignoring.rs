//! The rules of `.gitignore` and `.choirignore`, as a table, asked both of the walk and of `IgnoreRules`.

use projector::scan::IgnoreRules;
use shared_types::FilePath;

use crate::fixture::{Home, at, listing};

/// Writes the rule files and the named files, and checks which of the files a scan sees.
#[track_caller]
fn check(rules: &[(&str, &str)], seen: &[&str], ignored: &[&str]) {
    let home = Home::new();
    for path in seen.iter().chain(ignored) {
        home.write(path, "x");
    }
    for (path, text) in rules {
        home.write(path, text);
    }
    let found = listing(&home.scan());
    let visible = |path: &str| found.iter().any(|line| line == path);
    let single = IgnoreRules::new(&home.workspace);
    for path in seen {
        assert!(visible(path), "{path} should be seen; found {found:?}");
        assert!(!single.is_ignored(&at(path), false), "{path} by itself should not be ignored");
    }
    for path in ignored {
        assert!(!visible(path), "{path} should be ignored");
        assert!(single.is_ignored(&at(path), false), "{path} by itself should be ignored");
    }
}

#[test]
fn patterns_mean_what_they_mean_in_git() {
    check(&[(".gitignore", "*.o\n")], &["a.c", "o"], &["a.o", "d/b.o", "d/e/f.o"]);
    check(&[(".gitignore", "/build\n")], &["d/build"], &["build"]);
    check(&[(".gitignore", "/build\n")], &["d/build/x"], &["build/x/y"]);
    check(&[(".gitignore", "out/\n")], &["x/out", "y"], &["out/a", "d/out/b"]);
    check(&[(".gitignore", "a/**/z\n")], &["z", "b/z"], &["a/z", "a/b/c/z"]);
    check(&[(".gitignore", "doc/*.txt\n")], &["doc/sub/a.txt", "a.txt"], &["doc/a.txt"]);
    check(&[(".gitignore", "# comment\n\n\\#x\nspace\\ \n")], &["comment"], &["#x", "space "]);
    check(&[(".gitignore", "\u{feff}bom\r\nnext\r\n")], &["x"], &["bom", "next"]);
}

#[test]
fn the_nearest_rule_wins_and_the_last_line_in_it() {
    check(&[(".gitignore", "*.log\n!keep.log\n")], &["keep.log", "d/keep.log"], &["x.log"]);
    check(&[(".gitignore", "!keep.log\n*.log\n")], &[], &["keep.log"]);
    check(&[(".gitignore", "*.log\n"), ("d/.gitignore", "!*.log\n")], &["d/x.log", "d/e/y.log"], &["x.log"]);
    check(&[("d/.gitignore", "/x\n*.tmp\n")], &["x", "d/e/x", "a.tmp"], &["d/x", "d/e/b.tmp"]);
}

#[test]
fn nothing_below_an_ignored_folder_comes_back() {
    check(&[(".gitignore", "d/\n!d/keep\n")], &["x"], &["d/keep"]);
    check(&[(".gitignore", "d/*\n!d/keep\n")], &["d/keep"], &["d/other"]);
    check(&[(".gitignore", "d/\n"), ("d/.gitignore", "!*\n")], &["x"], &["d/keep"]);
}

#[test]
fn choirignore_has_the_last_word() {
    check(&[(".choirignore", "*.secret\n")], &["a"], &["b.secret"]);
    check(&[(".gitignore", "*.log\n"), (".choirignore", "!*.log\n")], &["x.log", "d/y.log"], &[]);
    check(&[("d/.gitignore", "!x\n"), (".choirignore", "x\n")], &["y"], &["d/x"]);
    check(&[(".choirignore", "*\n!*/\n!*.md\n")], &["a.md", "d/b.md"], &["c.txt", "d/c.txt"]);
}

#[test]
fn rules_from_elsewhere_do_not_count() {
    let home = Home::new();
    home.write("x.c", "x").write(".ignore", "*.c\n").write(".git/info/exclude", "*.c\n");
    std::fs::write(home.root().parent().unwrap().join(".gitignore"), "*\n").unwrap();
    std::fs::write(home.outside().join("rules"), "*\n").unwrap();
    home.link(home.outside().join("rules"), ".gitignore");
    assert_eq!(listing(&home.scan()), [".git/info/exclude", ".ignore", "x.c"]);
}

#[test]
fn a_path_that_the_log_holds_is_never_ignored() {
    let home = Home::new();
    home.write(".gitignore", "*.log\nbuild/\n").write("a.log", "x").write("b.log", "x");
    home.write("build/kept/deep", "x").write("build/other", "x").folder("build/empty");
    let known = ["a.log", "build/kept/deep", "build/empty", "build/gone", ".gitignore"];
    let found = home.scan_knowing(&known);
    assert_eq!(listing(&found), [".gitignore", "a.log", "build/empty/", "build/kept/deep"]);
    assert!(found.covers(&at("build/gone")));
}

#[test]
fn a_folder_with_only_ignored_things_is_not_an_empty_folder() {
    let home = Home::new();
    home.write(".gitignore", "*.o\nskip/\n").write("out/a.o", "x").write("deep/skip/x", "x").folder("empty");
    assert_eq!(listing(&home.scan()), [".gitignore", "empty/"]);
    // But one that the log holds stays, when ignored things appear in it.
    assert_eq!(listing(&home.scan_knowing(&["out"])), [".gitignore", "empty/", "out/"]);
}

#[test]
fn single_answers_tell_files_from_folders() {
    let home = Home::new();
    home.write(".gitignore", "d/\n/top\n");
    let rules = IgnoreRules::new(&home.workspace);
    let ask = |path: &str, is_dir| rules.is_ignored(&FilePath::parse(path).unwrap(), is_dir);
    assert!(ask("d", true) && !ask("d", false) && ask("x/d/y/z", false));
    assert!(ask("top", false) && !ask("x/top", false) && ask("top/x", true));
}
