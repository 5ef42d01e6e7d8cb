//! The child as a program of its own, for tests and examples, which cannot run themselves as the child.

fn main() {
    match local_model::run_if_child() {
        Some(code) => std::process::exit(code),
        None => std::process::exit(2),
    }
}
