//! Commands run, and their changes stay in the layer.

use std::io::{Read, Write};

use isolation::{Access, Command, Finding, Image, Limit, Mount, Network, Size, Status};

use crate::fixture::{Fixture, exists, run, with_every_backend};

with_every_backend!(
    output_and_exit_code_are_returned,
    a_command_runs_unprivileged,
    writes_stay_in_the_layer,
    only_programs_of_the_host_are_visible,
    long_input_reaches_the_command,
    a_missing_program_is_named,
    a_missing_tool_is_named,
    the_time_limit_ends_background_processes,
    endless_output_ends_the_cell,
    a_full_layer_ends_the_cell,
    a_pty_behaves_as_a_terminal,
    a_piped_command_reads_and_writes_until_it_is_stopped,
    stopping_leaves_nothing,
    too_much_memory_is_refused_and_counted,
    connections_to_the_proxy_address_reach_the_host,
    read_only_mounts_are_ro_nosuid_nodev,
    covered_files_cannot_be_read_written_or_removed,
);

fn output_and_exit_code_are_returned(fixture: Fixture) {
    let finished = fixture.sh("echo out; echo err >&2; exit 3");
    assert_eq!((finished.out.as_str(), finished.err.as_str()), ("out\n", "err\n"));
    assert_eq!(finished.exit.status, Status::Exited(3));
}

fn a_command_runs_unprivileged(fixture: Fixture) {
    let finished = fixture.sh("id -u; id -un; grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status");
    let out = finished.ok();
    assert!(out.starts_with("1000\nchoir\n"), "{out}");
    assert!(out.contains("CapEff:\t0000000000000000") && out.contains("CapBnd:\t0000000000000000"), "{out}");
    assert!(out.contains("NoNewPrivs:\t1") && out.contains("Seccomp:\t2"), "{out}");
}

fn writes_stay_in_the_layer(fixture: Fixture) {
    fixture.write("a.txt", "before");
    fixture.write("gone.txt", "x");
    fixture.write(".choir/secret", "s");
    let finished = fixture.sh("echo after > a.txt; rm gone.txt; mkdir new; echo n > new/file; ls -A");
    assert_eq!(finished.ok(), "a.txt\nnew");
    assert_eq!(std::fs::read_to_string(fixture.workspace().join("a.txt")).unwrap(), "before");
    assert!(exists(&fixture.workspace().join("gone.txt")) && !exists(&fixture.workspace().join("new")));
    assert_eq!(std::fs::read_to_string(fixture.upper().join("a.txt")).unwrap(), "after\n");
}

fn only_programs_of_the_host_are_visible(fixture: Fixture) {
    let finished = fixture.sh(
        "ls /; ls /home /root /etc/shadow /var/lib 2>/dev/null; cat /etc/passwd; ls /proc | grep -c '^[0-9]'",
    );
    assert!(!finished.out.contains("root:"), "{}", finished.out);
    assert!(!finished.out.contains("shadow"), "{}", finished.out);
}

fn long_input_reaches_the_command(fixture: Fixture) {
    let cell = fixture.start();
    let input = vec![b'x'; 3 << 20];
    let command = Command { input, ..Command::new(["/usr/bin/wc", "-c"]) };
    assert_eq!(run(&*cell, &command).ok(), (3 << 20).to_string());
    let command = Command { input: vec![b'y'; 2 << 20], ..Command::new(["/bin/cat"]) };
    assert_eq!(run(&*cell, &command).out.len(), 2 << 20);
}

fn a_missing_program_is_named(fixture: Fixture) {
    let error = fixture.start().exec(&Command::new(["no-such-program"]), &mut |_, _| ()).unwrap_err();
    assert!(error.to_string().contains("no-such-program"), "{error}");
}

fn a_missing_tool_is_named(mut fixture: Fixture) {
    fixture.policy.image = Image::Host { tools: vec!["/no/such/tool".into()] };
    let refused = fixture.backend.start(&fixture.policy, &fixture.folder.path().join("cell")).unwrap_err();
    assert!(refused.to_string().contains("/no/such/tool"), "{refused}");
}

fn the_time_limit_ends_background_processes(mut fixture: Fixture) {
    fixture.policy.limits.time = std::time::Duration::from_millis(700);
    let finished = fixture.sh("setsid sh -c 'sleep 60; echo x > late' & sleep 60");
    assert_eq!(finished.exit.status, Status::Limited(Limit::Time));
}

fn endless_output_ends_the_cell(mut fixture: Fixture) {
    fixture.policy.limits.output = 100_000;
    assert_eq!(fixture.sh("yes").exit.status, Status::Limited(Limit::Output));
}

fn a_full_layer_ends_the_cell(mut fixture: Fixture) {
    fixture.policy.limits.disk = 4 << 20;
    let finished =
        fixture.sh("for i in 1 2 3 4 5; do dd if=/dev/zero of=f$i bs=1M count=3 2>/dev/null; done");
    assert_eq!(finished.exit.status, Status::Limited(Limit::Disk));
}

fn a_piped_command_reads_and_writes_until_it_is_stopped(mut fixture: Fixture) {
    // The time limit does not apply to piped commands.
    fixture.policy.limits.time = std::time::Duration::from_millis(50);
    let cell = fixture.start();
    let line = "echo ready >&2; while read -r line; do echo \"$line and back\"; done; sleep 9";
    let mut command = cell.spawn_piped(&Command::new(["bash", "-c", line])).unwrap();
    let mut output = std::io::BufReader::new(command.output);
    for word in ["here", "there"] {
        std::thread::sleep(std::time::Duration::from_millis(60));
        command.input.write_all(format!("{word}\n").as_bytes()).unwrap();
        let mut said = String::new();
        std::io::BufRead::read_line(&mut output, &mut said).unwrap();
        assert_eq!(said, format!("{word} and back\n"));
    }
    assert_eq!((command.stderr_tail)(), "ready");
    cell.stop();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

fn a_pty_behaves_as_a_terminal(fixture: Fixture) {
    let cell = fixture.start();
    let command = Command::new(["/bin/sh", "-c", "tty; stty size; read line; echo got $line; exit 4"]);
    let mut pty = cell.pty(&command, Size { columns: 91, rows: 33 }).unwrap();
    pty.input.write_all(b"hello\n").unwrap();
    let mut said = String::new();
    pty.output.read_to_string(&mut said).unwrap();
    assert!(said.contains("/dev/pts/0") && said.contains("33 91") && said.contains("got hello"), "{said}");
    assert_eq!(pty.control.wait(), Status::Exited(4));
}

fn stopping_leaves_nothing(fixture: Fixture) {
    let cell = fixture.start();
    let mut pty = cell.pty(&Command::new(["/bin/sleep", "987654"]), Size { columns: 80, rows: 24 });
    cell.stop();
    let mut rest = Vec::new();
    if let Ok(pty) = &mut pty {
        pty.output.read_to_end(&mut rest).unwrap();
    }
    let finished = std::process::Command::new("pgrep").args(["-f", "sleep 987654"]).output().unwrap();
    assert!(finished.stdout.is_empty(), "{}", String::from_utf8_lossy(&finished.stdout));
    assert!(cell.exec(&Command::new(["/bin/true"]), &mut |_, _| ()).is_err());
}

fn too_much_memory_is_refused_and_counted(mut fixture: Fixture) {
    let checks = fixture.backend.probe().checks;
    let groups = checks.iter().find(|check| check.what == "control groups");
    if !groups.is_some_and(|check| matches!(check.finding, Finding::Works(_))) {
        eprintln!("skipped: no control groups");
        return;
    }
    fixture.policy.limits.memory = 96 << 20;
    let cell = fixture.start();
    let finished = run(
        &*cell,
        &Command::new(["/bin/sh", "-c", "head -c 400000000 /dev/zero | tail -c 300000000 | wc -c"]),
    );
    assert_ne!(finished.out.trim(), "300000000");
    let usage = cell.stop();
    assert!(usage.out_of_memory > 0 && usage.memory_peak <= 96 << 20, "{usage:?}");
}

fn connections_to_the_proxy_address_reach_the_host(mut fixture: Fixture) {
    fixture.policy.network = Network::Open;
    let cell = fixture.start();
    let listener = cell.take_listener().unwrap();
    let answer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut line = [0; 5];
        stream.read_exact(&mut line).unwrap();
        stream.write_all(b"world").unwrap();
        line
    });
    let script = "exec 3<>/dev/tcp/127.0.0.1/3128; echo -n hello >&3; cat <&3";
    assert_eq!(run(&*cell, &Command::new(["/bin/bash", "-c", script])).ok(), "world");
    assert_eq!(&answer.join().unwrap(), b"hello");
}

fn covered_files_cannot_be_read_written_or_removed(mut fixture: Fixture) {
    fixture.write("app/.env", "hunter2");
    fixture.write("app/readme", "words");
    let covered = ["app/.env", "gone/.env", "link/.env"].map(Into::into).to_vec();
    std::os::unix::fs::symlink("/etc", fixture.workspace().join("link")).unwrap();
    fixture.policy.mounts[0].covered = covered;
    let finished = fixture.sh("cd app; cat .env; echo x > .env; rm -f .env; mv .env y; chmod 777 .env; cat .env; ln .env z; cat z; mv ../app ../moved; cat ../moved/.env; cat ../moved/readme");
    assert_eq!(finished.ok(), "words", "{}", finished.err);
    assert_eq!(std::fs::read_to_string(fixture.workspace().join("app/.env")).unwrap(), "hunter2");
}

fn read_only_mounts_are_ro_nosuid_nodev(mut fixture: Fixture) {
    let source = fixture.folder.path().join("shown");
    std::fs::create_dir(&source).unwrap();
    let hidden = Vec::new();
    fixture.policy.mounts.push(Mount {
        source,
        target: "/shown".into(),
        access: Access::ReadOnly,
        hidden,
        covered: Vec::new(),
    });
    let finished = fixture.sh("awk '{ print $5, $6 }' /proc/self/mountinfo");
    for folder in ["/", "/usr", "/shown"] {
        let line = finished.ok().lines().rfind(|line| line.starts_with(&format!("{folder} ")));
        let line = line.unwrap_or_else(|| panic!("{folder}: {}", finished.out));
        let (_, options) = line.split_once(' ').unwrap();
        for wanted in ["ro", "nosuid", "nodev"] {
            assert!(options.split(',').any(|option| option == wanted), "{line}");
        }
    }
}
