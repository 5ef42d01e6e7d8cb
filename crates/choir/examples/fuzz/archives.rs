//! Small archives, broken: each is refused, or is the same computer as before.

use archive::{Archive, ImportError, Limits, Manifest, Verified, export, plan_import, stage_contents};
use event_log::conformance::sample;
use event_log::{Append, EventLog, MemoryLog};
use shared_types::payload::UnknownPayload;
use shared_types::payload::file::{FileBatch, FileChange, FileNode};
use shared_types::payload::setting::SettingSet;
use shared_types::payload::user::UserCreate;
use shared_types::{ContentHash, ContentRef, Event, EventName, FilePath, Payload, Seq, Timestamp, UserId};
use zip::CompressionMethod::{Deflated, Stored};

use crate::random::Random;
use crate::repack::{Entries, MANIFEST};
use crate::trying;

const TOKENS: &[&str] = &[
    "PK\u{1}\u{2}",
    "PK\u{3}\u{4}",
    "PK\u{5}\u{6}",
    "PK\u{6}\u{6}",
    "PK\u{6}\u{7}",
    "PK\u{7}\u{8}",
    "\0\0\0\0",
    "../",
    "manifest.json",
    "log/events.jsonl",
    "contents/",
    "{}",
    "null",
    "\n",
    "\"seq\":",
    "0",
    "-1",
    "\"",
    "file.batch",
    "18446744073709551615",
    "\u{7f}\u{7f}\u{7f}\u{7f}",
];

/// What an untouched archive comes to.
struct Base {
    bytes: Vec<u8>,
    manifest: Manifest,
    entries: Entries,
}

pub(crate) struct Archives(Vec<Base>);

impl Archives {
    pub(crate) fn new() -> Self {
        let logs = [lived_in(3), lived_in(12), MemoryLog::new(user("empty"))];
        Self(logs.iter().map(Base::of).collect())
    }

    /// True if the archive was taken.
    pub(crate) fn case(&self, seed: u64, random: &mut Random) -> Result<bool, String> {
        let base = if random.chance(20) { &self.0[2] } else { &self.0[random.below(2)] };
        if random.chance(4) {
            return base.forged(seed, random);
        }
        let bytes = base.broken(random);
        trying(seed, "archive", &bytes);
        let Ok(verified) = verify(&bytes) else { return Ok(false) };
        let (was, is) = (&base.manifest, verified.manifest());
        if (is.seq, is.hash, is.root) != (was.seq, was.hash, was.root) {
            return Err(format!("an archive that was broken is taken for another: {is:?}"));
        }
        take_in(&verified).map(|()| true)
    }
}

impl Base {
    fn of(log: &MemoryLog) -> Self {
        let mut bytes = Vec::new();
        let created = Timestamp::from_millis(1_763_194_320_000);
        let manifest = export(log, log.head().seq, created, &mut bytes, &|_, _| {}).unwrap();
        let entries = Entries::of(&bytes);
        Self { bytes, manifest, entries }
    }

    /// An archive whose head or root can no longer be another's than this one's.
    fn broken(&self, random: &mut Random) -> Vec<u8> {
        let mut entries = self.entries.clone();
        match random.below(8) {
            0 | 1 => {
                let mut bytes = self.bytes.clone();
                for _ in 0..=random.below(6) {
                    let at = random.below(bytes.len());
                    bytes[at] ^= 1 << random.below(8);
                }
                bytes
            }
            2 => {
                let mut bytes = self.bytes.clone();
                random.mutate(&mut bytes, TOKENS);
                bytes
            }
            3 => lying(self.bytes.clone(), random),
            4 => renamed(self.bytes.clone(), &self.entries, random),
            5 => {
                entries.0.remove(random.below(entries.0.len()));
                pack(&entries, random)
            }
            6 => {
                random.mutate(entries.get(MANIFEST), TOKENS);
                pack(&entries, random)
            }
            _ => {
                let at = random.below(entries.0.len());
                random.mutate(&mut entries.0[at].1, TOKENS);
                if entries.0[at].0 != MANIFEST && random.chance(2) {
                    entries.update_totals();
                }
                pack(&entries, random)
            }
        }
    }

    /// A log that somebody linked anew, with a manifest that fits: another computer, if it is one.
    fn forged(&self, seed: u64, random: &mut Random) -> Result<bool, String> {
        let mut entries = self.entries.clone();
        let odd = |text: &str, random: &mut Random| {
            let mut bytes = text.as_bytes().to_vec();
            random.mutate(&mut bytes, TOKENS);
            String::from_utf8(bytes)
                .ok()
                .filter(|text| serde_json::from_str::<serde_json::Value>(text).is_ok())
        };
        entries.edit_events(|events| {
            for _ in 0..=random.below(3) {
                if events.is_empty() {
                    return;
                }
                let at = random.below(events.len());
                match random.below(5) {
                    0 => drop(events.remove(at)),
                    1 => events.insert(at, events[random.below(events.len())].clone()),
                    2 => events[at].seq = Seq(random.next()),
                    3 => events[at].name = events[random.below(events.len())].name.clone(),
                    _ => {
                        let payload = odd(&events[at].payload, random).map(|text| text.replace('\n', " "));
                        events[at].payload = payload.map_or(events[at].payload.clone(), Into::into);
                    }
                }
            }
            if random.chance(2) {
                (1..).zip(events).for_each(|(seq, event)| event.seq = Seq(seq));
            }
        });
        let bytes = entries.pack();
        trying(seed, "forged", &bytes);
        let found = match verify(&bytes) {
            Err(ImportError::Root { found, .. }) => found,
            Err(_) => return Ok(false),
            Ok(verified) => return take_in(&verified).map(|()| true),
        };
        entries.edit_manifest(|manifest| manifest.root = found);
        let bytes = entries.pack();
        trying(seed, "forged-root", &bytes);
        let verified = verify(&bytes).map_err(|e| format!("with its own root it is refused: {e:?}"))?;
        take_in(&verified).map(|()| true)
    }
}

fn verify(bytes: &[u8]) -> Result<Verified, ImportError> {
    // Small archives need little, and a bound that is never met is not tried.
    let limits = Limits {
        directory: 1 << 20,
        manifest: 1 << 20,
        line: 1 << 18,
        list: 1 << 20,
        unpacked: 1 << 20,
        ..Limits::default()
    };
    Archive::verify(bytes.to_vec(), limits, &|_, _| {})
}

/// What was verified can be taken in.
fn take_in(verified: &Verified) -> Result<(), String> {
    let log = MemoryLog::new(user("bob"));
    let plan = plan_import(verified, Some(&FilePath::parse("from").map_err(|e| e.to_string())?));
    stage_contents(verified, &log, &|_, _| {})
        .map_err(|e| format!("what was verified is not taken in: {e:?}"))?;
    for (path, node) in plan.map_or(Vec::new(), |plan| plan.files) {
        let here = node.content().is_none_or(|content| log.has_content(&content.hash).unwrap_or_default());
        if !here {
            return Err(format!("the content of {path} is not there"));
        }
    }
    Ok(())
}

fn pack(entries: &Entries, random: &mut Random) -> Vec<u8> {
    let mut entries = entries.clone();
    if random.chance(3) {
        let (a, b) = (random.below(entries.0.len()), random.below(entries.0.len()));
        entries.0.swap(a, b);
    }
    match random.below(3) {
        0 => entries.pack_with(|_, _| Stored),
        1 => entries.pack_with(|_, _| Deflated),
        _ => entries.pack(),
    }
}

/// Another number where a header has its sizes, its method, its flags or its offsets.
fn lying(mut bytes: Vec<u8>, random: &mut Random) -> Vec<u8> {
    let marks: &[&[u8]] = &[b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"PK\x06\x06", b"PK\x07\x08"];
    let mark = *random.pick(marks);
    let places: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(mark)).collect();
    if places.is_empty() {
        return bytes;
    }
    for _ in 0..=random.below(2) {
        let at = (*random.pick(&places) + 4 + random.below(42)).min(bytes.len() - 4);
        let value = *random.pick(&[0, 1, 0xff, 0xffff, 0xffff_fffe, u32::MAX, 1 << 31, 1 << 20]);
        let width = 1 + random.below(4);
        bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }
    bytes
}

/// One name in the place of another, or one that is spelled otherwise, in some of the headers.
fn renamed(mut bytes: Vec<u8>, entries: &Entries, random: &mut Random) -> Vec<u8> {
    let names: Vec<&str> = entries.0.iter().map(|(name, _)| name.as_str()).collect();
    let from = *random.pick(&names);
    let mut to = random.pick(&names).as_bytes().to_vec();
    if random.chance(2) {
        to = from.as_bytes().to_vec();
        let at = random.below(to.len());
        to[at] = *random.pick(b"/.\\A \0a0");
    }
    to.resize(from.len(), b'/');
    let everywhere = random.chance(2);
    for at in 0..bytes.len() - from.len() {
        if bytes[at..].starts_with(from.as_bytes()) && (everywhere || random.chance(2)) {
            bytes[at..at + to.len()].copy_from_slice(&to);
        }
    }
    bytes
}

fn user(name: &str) -> UserId {
    UserId::parse(name).unwrap()
}

/// A log with files small and large, an empty one, a batch, a setting, and an event of a type that nobody knows.
fn lived_in(files: u64) -> MemoryLog {
    let log = MemoryLog::new(user("ada"));
    append(&log, UserCreate { name: "Ada".into() }, &[]);
    sample::fill(&log, files);
    append(&log, sample::write("empty", ContentRef::of(b"")), &[b""]);
    let large: Vec<u8> = (0..70_000_u32).map(|n| (n.wrapping_mul(n) >> 7) as u8).collect();
    let staged = log.stage(&mut large.as_slice()).unwrap();
    append(&log, sample::write("large", staged.content()), &[]);
    let link = FileNode::Symlink { target: "empty".into() };
    let changes = [sample::write("d/e", ContentRef::of(b"e")), sample::write("d/f", ContentRef::of(b"f"))];
    let mut changes: Vec<FileChange> = changes.into_iter().map(FileChange::Write).collect();
    if let FileChange::Write(last) = &mut changes[1] {
        last.node = link;
    }
    let (batch, list) = FileBatch::of(changes);
    append(&log, batch, &[&list, b"e"]);
    append(
        &log,
        SettingSet { key: "theme".into(), value: serde_json::json!([0.1, "dark"]), prev: None },
        &[],
    );
    let name = EventName::parse("hologram.show").unwrap();
    let json = format!("{{\"content\":\"{}\"}}", ContentHash::of(b"seen")).into();
    append(&log, Payload::Unknown(UnknownPayload { name, version: 3, json }), &[b"seen"]);
    log
}

fn append(log: &MemoryLog, payload: impl Into<Payload>, contents: &[&[u8]]) {
    let after = log.head().seq;
    let event: Event = sample::event(after.next(), sample::op(), payload);
    let contents = contents.iter().map(|bytes| (ContentHash::of(bytes), bytes.to_vec())).collect();
    let append = Append { command: sample::command(), expected: after, events: vec![event], contents };
    sample::append_one(log, append).unwrap();
}
