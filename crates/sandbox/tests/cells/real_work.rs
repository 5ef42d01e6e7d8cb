//! What people really run: each of it twice with an undo between, ending in the same tree.

use std::path::{Path, PathBuf};

use crate::test_computer::TestComputer;

/// A house whose cells see these folders of programs, too.
fn house_with(tools: &[PathBuf]) -> TestComputer {
    let mut computer = TestComputer::new();
    let list: Vec<String> = tools.iter().map(|tool| format!("{:?}", tool.display().to_string())).collect();
    std::fs::write(computer.path(".choir/choir.toml"), format!("[cells]\ntools = [{}]\n", list.join(", ")))
        .unwrap();
    computer.reopen();
    computer
}

fn twice(computer: &TestComputer, script: &str) -> String {
    let before = computer.tree();
    let first = computer.sh(script);
    let after = computer.tree();
    assert_ne!(before, after, "{}", computer.output(&first));
    computer.assert_settled();
    computer.undo(first.op);
    assert_eq!(computer.tree(), before);
    computer.assert_settled();
    let second = computer.sh(script);
    assert_eq!(computer.tree(), after);
    computer.assert_settled();
    computer.output(&second)
}

#[test]
fn git_works_inside_and_its_repository_is_undone_as_a_whole() {
    let computer = TestComputer::new();
    computer.write("notes.md", "one\n");
    // The index remembers when files were looked at; one that is read from a commit does not.
    let script = "set -e; export GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z; \
        export GIT_AUTHOR_NAME=Ada GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=Ada GIT_COMMITTER_EMAIL=a@example.org; \
        git init -q -b main .; git add .; git commit -q -m one; echo two >> notes.md; git commit -q -a -m two; \
        git mv notes.md renamed.md; git commit -q -m three; git checkout -q -b side; git checkout -q main; \
        git gc -q; rm .git/index; git read-tree HEAD; git log --oneline | wc -l";
    assert_eq!(twice(&computer, script).trim(), "3");
    assert_eq!(computer.read("renamed.md"), "one\ntwo\n");
}

#[test]
fn cargo_builds_a_crate_and_goes_on_where_it_was() {
    let toolchain = Path::new(env!("CARGO")).parent().and_then(Path::parent).unwrap().to_owned();
    let computer = house_with(&[toolchain]);
    computer.write(".gitignore", "target/\n");
    computer.write("Cargo.toml", "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    computer.write("src/main.rs", "fn main() { println!(\"it runs\"); }\n");
    let said = twice(&computer, "cargo build --offline -q && ./target/debug/small");
    assert_eq!(said, "it runs\n");
    // What is built stays, so that the next build has nothing to do.
    let ran = computer.sh("cargo build --offline 2>&1");
    assert!(!computer.output(&ran).contains("Compiling"), "{}", computer.output(&ran));
    assert_eq!(ran.done.total, 0);
}

#[test]
fn thousands_of_small_files_come_and_go() {
    let computer = TestComputer::new();
    computer.write(".gitignore", "node_modules/\n");
    let script = "for d in node_modules vendor; do for i in $(seq 60); do mkdir -p $d/p$i/lib; \
        for j in $(seq 25); do echo \"$i $j\" > $d/p$i/lib/f$j.js; done; ln -s lib/f1.js $d/p$i/index.js; done; done; \
        mv vendor/p1 vendor/renamed; rm -r vendor/p2; find vendor node_modules | wc -l";
    twice(&computer, script);
    assert!(computer.has("node_modules/p60/lib/f25.js") && computer.has("vendor/renamed/lib/f1.js"));
    assert!(!computer.has("vendor/p2"));
}

#[test]
fn python_runs_inside() {
    let found =
        std::process::Command::new("python3").args(["-c", "import sys; print(sys.base_prefix)"]).output();
    let Ok(found) = found else { return eprintln!("skipped: this machine has no python3") };
    let prefix = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim());
    let computer = if prefix.starts_with("/usr") { TestComputer::new() } else { house_with(&[prefix]) };
    computer.write("data.csv", "a,1\nb,2\n");
    computer.write(
        "sum.py",
        "import csv, json, os, pathlib, shutil, sqlite3, subprocess\n\
         rows = list(csv.reader(open('data.csv')))\n\
         pathlib.Path('out').mkdir()\n\
         json.dump({k: int(v) for k, v in rows}, open('out/sum.json', 'w'))\n\
         shutil.copytree('out', 'copy'); shutil.move('copy', 'moved')\n\
         os.rename('data.csv', 'renamed.csv')\n\
         print(subprocess.run(['wc', '-l', 'renamed.csv'], capture_output=True, text=True).stdout.split()[0])\n",
    );
    assert_eq!(twice(&computer, "python3 sum.py").trim(), "2");
    assert_eq!(computer.read("moved/sum.json"), "{\"a\": 1, \"b\": 2}");
}

#[test]
fn git_on_the_host_runs_nothing_that_a_command_left_in_the_workspace() {
    let computer = TestComputer::new();
    computer.write("notes.md", "one\n");
    let ran = computer.sh("git init -q . && git config user.name Ada");
    assert_eq!(ran.report.notes, [], "ordinary settings are taken over");
    assert!(computer.read(".git/config").contains("Ada"));
    let outside = tempfile::tempdir().unwrap();
    let proof = outside.path().join("ran");
    let hook = format!("#!/bin/sh\necho x >> {}\n", proof.display());
    let ran = computer.sh(&format!(
        "printf '{}' > .git/fs; chmod 755 .git/fs; mkdir -p .git/hooks build; cp .git/fs .git/hooks/post-index-change; \
         git config core.fsmonitor .git/fs; cp -r .git build/inner; ln -s build/inner linked; \
         mkdir sub; echo 'gitdir: ../build/inner' > sub/.git; git -C build init -q other; \
         git -C build/other config core.fsmonitor /workspace/.git/fs",
        hook.replace('\n', "\\n")
    ));
    let notes = ran.report.notes.join("\n");
    for path in [
        ".git/config",
        ".git/hooks/post-index-change",
        "build/inner/config",
        "sub/.git",
        "build/other/.git/config",
    ] {
        assert!(notes.contains(&format!("{path} was left out")), "{path} in {notes}");
    }
    assert!(computer.read(".git/config").contains("Ada"), "the settings from before stay");
    computer.assert_settled();
    for folder in ["", "sub", "build/inner", "build/other", "linked"] {
        let status = std::process::Command::new("git")
            .args(["-c", "safe.directory=*", "status"])
            .current_dir(computer.path(folder))
            .output()
            .unwrap();
        assert!(!proof.exists(), "git status in {folder:?} ran it: {status:?}");
    }
}
