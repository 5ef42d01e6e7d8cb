//! Prints `docs/events.md`: every family and type, from the same table that encodes and decodes them, with the
//! frozen fixture of each as its example. `cargo xtask tidy --fix` writes it.

use std::path::Path;

use shared_types::{Payload, Reversibility, payload::TypeInfo};

fn main() -> std::io::Result<()> {
    print!("{HEAD}");
    for (doc, types) in Payload::families() {
        println!("\n## {}\n", doc.trim());
        println!("| type | v | undo | when |\n|---|---|---|---|");
        for info in types {
            let undo = match info.reversibility {
                Reversibility::Reversible => "reversible",
                Reversibility::Compensable => "compensable",
                Reversibility::Final => "final",
            };
            println!("| `{}` | {} | {undo} | {} |", info.name, info.version, one_line(info.doc));
        }
        for info in types {
            println!("\n`{}`\n\n```json\n{}\n```", info.name, example(info)?);
        }
    }
    Ok(())
}

fn one_line(doc: &str) -> String {
    doc.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn example(info: &TypeInfo) -> std::io::Result<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("../../fixtures/events/v{}/{}.json", info.version, info.name));
    let event: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    Ok(serde_json::to_string_pretty(&event["payload"])?)
}

const HEAD: &str = "# Events

Generated from `crates/shared-types` by `cargo xtask tidy --fix`; do not edit.

Every event has the same envelope: `id`, `seq`, `ts`, `source` (`user`, `agent`, `system`), `type`, `v` (the payload's
version, 1 if absent), `op`, `actor`, `run_id`, `cause`, `taint`, `payload` and `hash`. The examples below are the
payloads of the frozen fixtures in `fixtures/events/`, which must decode forever. Types and fields that a version does
not know are carried as they are.
";
