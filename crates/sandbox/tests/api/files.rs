//! Files over HTTP: written, read, moved, copied, deleted, found.

use axum::http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::test_machine::{RequestBody, TestMachine, nothing};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_is_on_disk_in_the_list_and_found() {
    let machine = TestMachine::new().await;
    machine.write("notes/tide%20pools.md", "barnacle zone\n").await;
    let root = machine.get("/api/v1/files").await.json;
    assert_eq!(
        std::fs::read_to_string(machine.workspace().join("notes/tide pools.md")).unwrap(),
        "barnacle zone\n"
    );
    let names: Vec<_> =
        root["entries"].as_array().unwrap().iter().map(|e| e["path"].as_str().unwrap()).collect();
    assert_eq!(names, ["notes", "Welcome.md"], "folders come first: {root}");
    let inside = machine.get("/api/v1/files?path=notes").await.json;
    assert_eq!(inside["entries"][0]["path"], "notes/tide pools.md");
    for words in ["tide", "barnacle", "POOLS"] {
        let found = machine.get(&format!("/api/v1/search?q={words}")).await.json;
        assert_eq!(found[0]["path"], "notes/tide pools.md", "{words}: {found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_over_something_else_than_was_seen_is_refused_with_what_is_there() {
    let machine = TestMachine::new().await;
    machine.write("a.txt", "one").await;
    let seen = machine.get("/api/v1/content?path=a.txt").await.header("x-choir-hash").to_owned();
    machine.write("a.txt", "two").await;
    let head = machine.head().await;
    let late = machine.put(&format!("/api/v1/content?path=a.txt&base={seen}"), b"three").await;
    assert_eq!((late.status, late.code()), (StatusCode::CONFLICT, "stale"));
    let current = late.json["current"].as_str().unwrap();
    assert_eq!(machine.get(&format!("/api/v1/content?hash={current}")).await.bytes, b"two");
    assert_eq!(machine.head().await, head);
    let again = machine.put(&format!("/api/v1/content?path=a.txt&base={current}"), b"three").await;
    assert_eq!(again.status, StatusCode::OK);
    let taken = machine.put("/api/v1/content?path=a.txt&base=absent", b"four").await;
    assert_eq!(taken.code(), "stale");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ignored_file_is_in_the_way_of_a_new_one() {
    let machine = TestMachine::new().await;
    machine.write(".gitignore", "*.log\n").await;
    let paths = machine.workspace().join("a.log");
    std::fs::write(&paths, "theirs").unwrap();
    let head = machine.head().await;
    let taken = machine.put("/api/v1/content?path=a.log&base=absent", b"mine").await;
    assert_eq!((taken.code(), machine.head().await), ("stale", head));
    assert_eq!(std::fs::read(paths).unwrap(), b"theirs");
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_come_whole_in_parts_or_not_again() {
    let machine = TestMachine::new().await;
    let large: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    machine.put("/api/v1/content?path=large.bin", &large).await;
    let whole = machine.get("/api/v1/content?path=large.bin").await;
    assert_eq!(whole.bytes, large);
    let tag = whole.header("etag").to_owned();
    let pass = machine.owners();
    let ask = |name: &'static str, value: String| {
        let (machine, pass) = (&machine, &pass);
        async move { machine.send_with(pass, "/api/v1/content?path=large.bin", name, &value).await }
    };
    assert_eq!(ask("if-none-match", tag).await.status, StatusCode::NOT_MODIFIED);
    let part = ask("range", "bytes=4-7".into()).await;
    assert_eq!((part.status, part.bytes.as_slice()), (StatusCode::PARTIAL_CONTENT, &1u32.to_le_bytes()[..]));
    assert_eq!(part.header("content-range"), "bytes 4-7/800000");
    assert_eq!(ask("range", "bytes=-4".into()).await.bytes, 199_999u32.to_le_bytes());
    let beyond = ask("range", "bytes=900000-".into()).await;
    assert_eq!((beyond.status, beyond.code()), (StatusCode::RANGE_NOT_SATISFIABLE, "bad_range"));
    assert_eq!(beyond.header("content-range"), "bytes */800000");
}

/// The most memory that this process, the server among it, held at once, in bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_large_file_takes_no_more_memory_than_a_small_file() {
    const SIZE: u64 = 256 << 20;
    let machine = TestMachine::new().await;
    machine.write("small.bin", "small").await;
    std::fs::File::create(machine.workspace().join("large.bin")).unwrap().set_len(SIZE).unwrap();
    let pass = machine.owners();
    let part_of = |path: &'static str| {
        let (machine, pass) = (&machine, &pass);
        async move {
            let target = format!("/api/v1/content?path={path}");
            machine.send_with(pass, &target, "range", "bytes=-4").await
        }
    };
    // The first one also waits until the edit is recorded.
    while part_of("large.bin").await.status != StatusCode::PARTIAL_CONTENT {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // From here on the peak counts anew: proc(5), clear_refs.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    part_of("small.bin").await;
    let before = peak_memory();
    let part = part_of("large.bin").await;
    assert_eq!(part.header("content-range"), format!("bytes {}-{}/{SIZE}", SIZE - 4, SIZE - 1));
    let grown = peak_memory() - before;
    assert!(grown < SIZE / 16, "{grown} bytes for four of them");
}

#[tokio::test(flavor = "multi_thread")]
async fn user_content_is_never_a_page_of_ours() {
    let machine = TestMachine::new().await;
    for name in ["evil.html", "evil.svg", "evil.xhtml", "evil"] {
        machine.write(name, "<script>alert(1)</script>").await;
        let read = machine.get(&format!("/api/v1/content?path={name}")).await;
        assert_eq!(read.header("content-type"), "text/plain; charset=utf-8", "{name}");
        assert_eq!(read.header("content-security-policy"), "sandbox; default-src 'none'", "{name}");
        assert_eq!(read.header("x-content-type-options"), "nosniff", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn things_are_moved_copied_and_deleted_and_all_of_it_comes_back() {
    let machine = TestMachine::new().await;
    machine.write("a/one.txt", "1").await;
    machine.write("a/two.txt", "2").await;
    for (route, body) in [
        ("files/copy", json!({ "from": "a", "to": "b" })),
        ("files/move", json!({ "from": "a", "to": "c" })),
        ("folders", json!({ "path": "empty" })),
        ("files/delete", json!({ "path": "b" })),
    ] {
        let done = machine.post(&format!("/api/v1/{route}"), body).await;
        assert_eq!(done.status, StatusCode::OK, "{route}: {done:?}");
    }
    // Lists and files follow the log together.
    machine.get("/api/v1/files").await;
    let on_disk = |path: &str| std::fs::read_to_string(machine.workspace().join(path)).ok();
    assert_eq!(
        (on_disk("c/two.txt").as_deref(), on_disk("b/two.txt"), on_disk("a/one.txt")),
        (Some("2"), None, None)
    );
    assert!(machine.workspace().join("empty").is_dir());
    let undone = machine.post("/api/v1/undo", nothing()).await;
    assert_eq!(undone.status, StatusCode::OK, "{undone:?}");
    assert_eq!(on_disk("b/two.txt").as_deref(), Some("2"));
    let taken = machine.post("/api/v1/files/copy", json!({ "from": "c", "to": "b" })).await;
    assert_eq!(taken.code(), "refused");
    let gone = machine.post("/api/v1/files/delete", json!({ "path": "nowhere" })).await;
    assert_eq!(gone.code(), "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_leaves_as_a_zip_and_its_files_arrive_elsewhere() {
    let machine = TestMachine::new().await;
    machine.write("poem.txt", "tide").await;
    let zip = machine.get("/api/v1/export").await;
    assert_eq!((zip.header("content-type"), &zip.bytes[..2]), ("application/zip", &b"PK"[..]));
    let other = TestMachine::new().await;
    other.post("/api/v1/files/delete", json!({ "path": "Welcome.md" })).await;
    let sent = RequestBody::Bytes("application/zip", zip.bytes.clone());
    let arrived = other.send(&other.owners(), Method::POST, "/api/v1/import", sent).await;
    assert_eq!(arrived.status, StatusCode::OK, "{arrived:?}");
    assert_eq!(other.get("/api/v1/content?path=poem.txt").await.bytes, b"tide");
    let mut broken = zip.bytes;
    let middle = broken.len() / 2;
    broken[middle] ^= 0xff;
    let head = other.head().await;
    let sent = RequestBody::Bytes("application/zip", broken);
    let refused = other.send(&other.owners(), Method::POST, "/api/v1/import", sent).await;
    assert_eq!(refused.code(), "refused");
    assert_eq!(other.head().await, head);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_files_are_changed_together_or_not_at_all_and_undone_together() {
    let machine = TestMachine::new().await;
    for name in ["a.txt", "b.txt", "folder/c.txt"] {
        machine.write(name, name).await;
    }
    let several = |body: Value| machine.post("/api/v1/files/several", body);
    let paths = |listing: &Value| -> Vec<String> {
        let entries = listing["entries"].as_array().unwrap().iter();
        entries.map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
    };
    let op_of = |done: &Value| done["op"].as_str().unwrap().to_owned();
    let listed = async || paths(&machine.get("/api/v1/files").await.json);
    let before = listed().await;
    let head = machine.head().await;
    for (body, code) in [
        (json!({ "delete": ["a.txt", "missing.txt"] }), "not_found"),
        (json!({ "move": [{ "from": "a.txt", "to": "z" }, { "from": "b.txt", "to": "z" }] }), "refused"),
        (json!({ "move": [{ "from": "a.txt", "to": "z" }, { "from": "a.txt", "to": "y" }] }), "refused"),
        (
            json!({ "move": [{ "from": "folder", "to": "z" }, { "from": "folder/c.txt", "to": "y" }] }),
            "refused",
        ),
        (json!({ "copy": [{ "from": "a.txt", "to": "z" }, { "from": "b.txt", "to": "z" }] }), "refused"),
        (json!({ "copy": [{ "from": "a.txt", "to": "b.txt" }] }), "refused"),
        (json!({ "rename": [] }), "invalid"),
    ] {
        let refused = several(body.clone()).await;
        assert_eq!((refused.code(), machine.head().await), (code, head), "{body}");
    }
    let deleted = several(json!({ "delete": ["a.txt", "b.txt", "folder", "folder/c.txt"] })).await;
    assert_eq!((deleted.status, &deleted.json["total"]), (StatusCode::OK, &json!(3)));
    let undo = machine.post(&format!("/api/v1/operations/{}/undo", op_of(&deleted.json)), nothing()).await;
    assert_eq!((undo.status, listed().await), (StatusCode::OK, before.clone()));
    // What lies in a folder that is moved moves with it.
    let moves =
        ["a.txt", "folder", "folder/c.txt"].map(|from| json!({ "from": from, "to": format!("new/{from}") }));
    let moved = several(json!({ "move": moves })).await;
    assert_eq!(moved.status, StatusCode::OK, "{}", moved.json);
    assert_eq!(machine.get("/api/v1/content?path=new/folder/c.txt").await.bytes, b"folder/c.txt");
    let undo = machine.post(&format!("/api/v1/operations/{}/undo", op_of(&moved.json)), nothing()).await;
    assert_eq!((undo.status, listed().await), (StatusCode::OK, before));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_files_are_uploaded_as_one_operation_or_not_at_all() {
    let machine = TestMachine::new().await;
    machine.write("b.txt", "old").await;
    let large = "l".repeat(300_000);
    let list = json!([
        { "path": "a.txt", "size": 3 }, { "path": "new/large.txt", "size": 300_000 },
        { "path": "b.txt", "size": 3 }, { "path": "empty.txt", "size": 0 },
    ]);
    let upload = async |body: String| {
        let body = RequestBody::Bytes("application/octet-stream", body.into_bytes());
        machine.send(&machine.owners(), Method::POST, "/api/v1/files/upload", body).await
    };
    let head = machine.head().await;
    for body in [
        String::new(),
        "no list\nbytes".into(),
        format!("{list}\nfor too few"),
        format!("{list}\nnew{large}newand more"),
        format!("{}\nonetwo", json!([{ "path": "a", "size": 3 }, { "path": "a", "size": 3 }])),
        format!("{}\none", json!([{ "path": "../a", "size": 3 }])),
    ] {
        let refused = upload(body.clone()).await;
        let start: String = body.chars().take(60).collect();
        assert!(refused.status.is_client_error(), "{} {}: {start}", refused.status, refused.json);
        assert_eq!(machine.head().await, head, "{start}");
    }
    let done = upload(format!("{list}\none{large}new")).await;
    assert_eq!((done.status, &done.json["total"]), (StatusCode::OK, &json!(4)), "{}", done.json);
    for (path, text) in [("a.txt", "one"), ("new/large.txt", &large), ("b.txt", "new"), ("empty.txt", "")] {
        let read = machine.get(&format!("/api/v1/content?path={path}")).await;
        assert_eq!(read.bytes, text.as_bytes(), "{path}");
    }
    let op = done.json["op"].as_str().unwrap();
    assert_eq!(
        machine.post(&format!("/api/v1/operations/{op}/undo"), nothing()).await.status,
        StatusCode::OK
    );
    assert_eq!(machine.get("/api/v1/content?path=b.txt").await.bytes, b"old");
    assert_eq!(machine.get("/api/v1/content?path=a.txt").await.status, StatusCode::NOT_FOUND);
}
