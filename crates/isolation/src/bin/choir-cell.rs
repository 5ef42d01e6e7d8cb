//! A launcher of cells and nothing else, for tests and for programs that cannot launch by themselves.

fn main() {
    if let Some(code) = isolation::entry() {
        std::process::exit(code);
    }
    eprintln!("choir-cell: this program is started by others, to launch cells");
    std::process::exit(2);
}
