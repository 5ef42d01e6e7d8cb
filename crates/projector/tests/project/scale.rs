//! Many files: everything works, and a capture of one path costs about one path.

use std::fs;
use std::time::Instant;

use crate::computer::Computer;

/// How many files; `CHOIR_SCALE=100000` measures a large workspace.
fn scale() -> usize {
    std::env::var("CHOIR_SCALE").ok().and_then(|text| text.parse().ok()).unwrap_or(20_000)
}

fn time<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let result = work();
    println!("{:>9.1} ms  {what}", start.elapsed().as_secs_f64() * 1e3);
    result
}

#[test]
fn many_files_are_captured_and_projected() {
    let mut computer = Computer::new();
    let count = scale();
    for number in 0..count {
        computer
            .edit(&format!("folder{:03}/file{number:06}", number % 500), format!("text number {number}\n"));
    }
    time("first capture", || computer.capture());
    time("catch up after it", || computer.catch_up());
    time("capture of everything, unchanged, just written", || computer.capture());
    std::thread::sleep(std::time::Duration::from_millis(200));
    time("capture of everything, unchanged, once more", || computer.capture());
    time("capture of everything, unchanged", || computer.capture());
    time("capture of one path, unchanged", || computer.capture_paths(&["folder007/file000007"]));
    computer.edit("folder007/file000007", "another text");
    let captured = time("capture of one path, changed", || computer.capture_paths(&["folder007/file000007"]));
    assert!(captured.op.is_some());
    time("catch up", || computer.catch_up());
    time("restart", || computer.restart());
    fs::remove_dir_all(computer.workspace()).unwrap();
    fs::create_dir_all(computer.workspace()).unwrap();
    computer.stop();
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(computer.state().join(format!("views.sqlite{suffix}")));
    }
    computer.start();
    time("projection of everything from nothing", || computer.catch_up());
    computer.assert_faithful();
}
