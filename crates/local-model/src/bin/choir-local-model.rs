//! The child alone, for tests and examples, which cannot be it themselves.

fn main() {
    match local_model::entry() {
        Some(code) => std::process::exit(code),
        None => std::process::exit(2),
    }
}
