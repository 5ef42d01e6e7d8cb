//! The desktop in the browser.

fn main() {}
